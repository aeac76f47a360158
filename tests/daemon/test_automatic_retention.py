"""Automatic retention: announced first, done a day later, once a day across restarts, and it can be switched off."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from components import Components
from daemon.pasture import Pasture, wait_for
from nightherd.daemon.retention import AutomaticRetention
from nightherd.model.checkpoints.persistence import Retention
from nightherd.model.checkpoints.retention import RetentionRun, Step, next_step
from nightherd.state.retention_record import RECORD, last_run, write_run
from nightherd.testing.determinism import FakeClock
from nightherd.testing.fork_server import ForkServer
from nightherd.wiring.stores import open_reader, system_clock
from surfaces.drivers import Cli
from workspace_fleet import land, make_project

DAY = timedelta(days=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FLEET = """\
reload: auto
agents:
  - name: mower
    runtime: scripted
    default_prompt: Mow.
    limits: {turns: 5}
    script:
      - say: Mown.
"""
OFF = {"extends": "nightherd/state_schema.yaml", "retention": {"automatic": False}}


class Yard:
    """A fleet that has mown once, and its retention with a clock of ours."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / ".nightherd"
        self.clock = FakeClock(system_clock().now())
        self.said: list[str] = []
        self.is_stopped = False

    def check(self) -> list[str]:
        """What it says when it looks now; every time as a daemon that has just been started."""
        before = len(self.said)
        retention = AutomaticRetention(
            self.state, self.clock, self.said.append, lambda: self.is_stopped
        )
        anyio.run(retention.check)
        return self.said[before:]

    @property
    def checkpoints(self) -> int:
        """Jobs that still have some. Of all others no journal is read again."""
        with closing(open_reader(self.state)) as reader:
            return sum(bool(reader.list_checkpoints(id)) for id in reader.jobs_with_checkpoints())

    @property
    def archives(self) -> list[Path]:
        return list(self.state.glob("threads/*/archive/state.json"))

    def switch_off(self) -> None:
        file = self.state / "config" / "state_persistence.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(OFF))


@pytest.fixture
def yard(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    assert cli("run", "mower", "--quiet").code == 0
    return Yard(tmp_path)


def test_the_first_run_only_announces_and_the_next_does_it(yard: Yard, cli: Cli) -> None:
    (announced,) = yard.check()
    assert announced.startswith("retention: will archive or remove 2 checkpoints of 1 job, from ")
    assert "apply the retention plan" in announced
    assert "automatic: false" in announced
    assert (yard.checkpoints, yard.archives) == (1, [])
    status = cli("status")
    assert announced.partition(" To see what:")[0] in status.out
    assert "To do it now: nightherd retention apply." in status.out
    assert cli("status", "--json").data["retention"]["is_announcement"] is True

    yard.clock.advance(DAY - timedelta(minutes=1))
    assert yard.check() == []
    assert yard.checkpoints == 1

    yard.clock.advance(timedelta(minutes=2))
    assert yard.check() == ["retention: archived or removed 2 checkpoints of 1 job"]
    assert (yard.checkpoints, len(yard.archives)) == (0, 1)
    assert "retention" not in cli("status").out
    assert yard.check() == []


def test_it_runs_again_every_day_and_is_silent_when_nothing_is_due(yard: Yard, cli: Cli) -> None:
    yard.check()
    yard.clock.advance(DAY)
    yard.check()
    assert cli("run", "mower", "--quiet").code == 0

    assert yard.check() == []
    yard.clock.advance(DAY)
    assert yard.check() == ["retention: archived or removed 2 checkpoints of 1 job"]
    yard.clock.advance(DAY)
    assert yard.check() == []
    run = last_run(yard.state)
    assert run is not None
    assert (run.is_announcement, run.jobs) == (False, 0)


def test_switched_off_it_does_nothing_and_later_begins_with_an_announcement(
    yard: Yard, cli: Cli
) -> None:
    yard.check()
    yard.switch_off()
    assert "retention" not in cli("status").out
    yard.clock.advance(DAY)

    assert yard.check() == []
    assert yard.checkpoints == 1

    (yard.state / "config" / "state_persistence.yaml").unlink()
    (announced,) = yard.check()
    assert "will archive" in announced
    assert yard.checkpoints == 1


def test_a_record_that_cannot_be_read_leads_to_another_announcement(yard: Yard) -> None:
    (yard.state / RECORD).write_text("{")
    yard.clock.advance(2 * DAY)

    assert "will archive" in yard.check()[0]
    assert yard.checkpoints == 1


def test_a_daemon_that_stops_on_the_way_leaves_the_rest_to_the_next(yard: Yard) -> None:
    yard.check()
    yard.clock.advance(DAY)
    yard.is_stopped = True
    assert yard.check() == []
    assert yard.checkpoints == 1

    yard.is_stopped = False
    assert yard.check() == ["retention: archived or removed 2 checkpoints of 1 job"]


def test_a_job_that_cannot_be_archived_is_shown_and_tried_again(yard: Yard, cli: Cli) -> None:
    yard.check()
    yard.clock.advance(DAY)
    (thread,) = (yard.state / "threads").iterdir()
    (thread / "archive").write_text("in the way")

    (said,) = yard.check()
    assert said.endswith("; 1 job failed; to see why: apply the retention plan")
    assert "; 1 job failed; to see why: nightherd retention apply\n" in cli("status").out

    (thread / "archive").unlink()
    yard.clock.advance(DAY)
    assert yard.check() == ["retention: archived or removed 2 checkpoints of 1 job"]


@pytest.mark.parametrize(
    ("is_announcement", "since", "step"),
    [
        (True, DAY, Step.APPLY),
        (True, DAY / 2, Step.NOTHING),
        (True, -DAY / 2, Step.NOTHING),
        (True, -2 * DAY, Step.ANNOUNCE),
        (False, DAY, Step.APPLY),
        (False, DAY / 2, Step.NOTHING),
        (False, -2 * DAY, Step.APPLY),
    ],
)
def test_what_is_due_depends_on_the_last_run(
    is_announcement: bool, since: timedelta, step: Step
) -> None:
    last = RetentionRun(at=NOON, is_announcement=is_announcement, checkpoints=1, jobs=1)

    assert next_step(Retention(), last, NOON + since) is step
    assert next_step(Retention(automatic=False), last, NOON + since) is Step.NOTHING


@pytest.mark.timeout(300)
def test_a_started_fleet_runs_it_by_itself(
    cli: Cli, tmp_path: Path, daemon_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pasture = Pasture(tmp_path, daemon_server, FLEET)
    assert cli("run", "mower", "--quiet").code == 0
    yard = Yard(tmp_path)

    first = pasture.daemon(retention_after_s=0)
    pasture.wait_until_said(first, "told retention: will archive")
    wait_for(lambda: last_run(yard.state) is not None, "the record of the announcement")
    first.send(signal.SIGTERM)
    first.wait()
    assert yard.checkpoints == 1

    announced = last_run(yard.state)
    assert announced is not None
    at = announced.at - DAY  # a day ago, as the next daemon sees it
    write_run(yard.state, RetentionRun(at=at, is_announcement=True, checkpoints=2, jobs=1))
    second = pasture.daemon(retention_after_s=0)
    pasture.wait_until_said(second, "told retention: archived or removed 2 checkpoints of 1 job")
    second.send(signal.SIGTERM)
    second.wait()
    assert (yard.checkpoints, len(yard.archives)) == (0, 1)


def test_workspaces_that_nothing_keeps_are_announced_and_removed_a_day_later(
    cli: Cli, fleet: Path, components: Components
) -> None:
    components.program("git")
    make_project(fleet)
    merged, dirty = (cli("run", "coder", "--json").data["job_id"] for _ in range(2))
    land(fleet, merged)
    yard = Yard(fleet)
    directories = fleet / ".nightherd-workspaces"

    (announced,) = yard.check()
    assert "and 1 workspace, from " in announced
    assert (directories / merged).exists()
    yard.clock.advance(DAY)
    (removed,) = yard.check()

    assert "and 1 workspace" in removed
    assert [one.name for one in directories.iterdir() if one.is_dir()] == [dirty]
    run = last_run(yard.state)
    assert run is not None
    assert (run.workspaces, run.failures) == (1, 0)
