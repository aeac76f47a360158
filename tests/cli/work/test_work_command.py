"""`nightherd work`: what was taken, giving an issue back, and what `status` and `doctor` say about sources."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from nightherd.host.system import SystemClock
from nightherd.model.change import Applied, Change
from nightherd.model.work.changes import EndWork, SetSourceState, SettleWork
from nightherd.model.work.item import WorkOutcome, WorkStatus, work_id
from nightherd.model.work.source import SourceState, SourceStatus
from nightherd.state.directory import init_state_directory
from nightherd.state.store import SqliteStore
from nightherd.testing.work_values import CLAIM, SOURCE, at, hold, reserve
from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: grazer
    runtime: scripted
    default_prompt: go
    work_source: {type: github, repo: acme/app}
    schedules: {nightly: {interval: 1h}}
    script: [{say: Hello.}]
"""
LATER = datetime(2999, 1, 1, tzinfo=UTC)
LIMITED = SourceState(
    id=SOURCE.id,
    status=SourceStatus.LIMITED,
    checked_at=at(1),
    blocked_until=LATER,
    error="GitHub limits requests about acme/app",
)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_of_a_test")
    init_state_directory(tmp_path / ".nightherd")
    return tmp_path / ".nightherd"


def apply(state: Path, *changes: Change) -> None:
    async def main() -> None:
        store = SqliteStore(state, SystemClock())
        for answer in await store.apply(changes):
            assert isinstance(answer, Applied), answer
        await store.close()

    anyio.run(main)


def test_nothing_was_taken(cli: Cli, state: Path) -> None:
    listed = cli("work")

    assert (listed.code, listed.out) == (0, "")
    assert "no issues were taken" in listed.err
    assert cli("work", "--json").data == []


def test_issues_are_listed_latest_first(cli: Cli, state: Path) -> None:
    apply(state, reserve(7), reserve(8, seconds=5), hold(7))
    listed = cli("work", "list").out.splitlines()

    assert listed[0].split()[:3] == ["ISSUE", "STATUS", "SCHEDULE"]
    assert [line.split()[0] for line in listed[1:]] == ["acme/app#8", "acme/app#7"]
    assert "held" in listed[2]
    assert "Broken fence" in listed[2]


def test_list_as_json_has_every_field(cli: Cli, state: Path) -> None:
    apply(state, reserve(7), SetSourceState(state=LIMITED))
    document = cli("work", "list", "--json").document

    (row,) = document["data"]
    assert (row["id"], row["issue"], row["status"]) == (f"{SOURCE.id}#7", 7, "reserved")
    assert (row["agent"], row["schedule"], row["attempts"]) == ("grazer", "nightly", 0)
    (source,) = document["sources"]
    assert (source["source"], source["status"]) == (SOURCE.id, "limited")


def test_only_issues_that_are_taken_now(cli: Cli, state: Path) -> None:
    end = EndWork(id=work_id(SOURCE.id, 7), claim=CLAIM, at=at(2), outcome=WorkOutcome.UNUSED)
    settled = SettleWork(
        id=end.id, claim=CLAIM, at=at(3), status=WorkStatus.RELEASED, not_before=at(4)
    )
    apply(state, reserve(7), reserve(8), end, settled)

    assert len(cli("work", "list", "--json").data) == 2
    assert [row["issue"] for row in cli("work", "list", "--open", "--json").data] == [8]


@pytest.mark.parametrize("name", ["acme/app#7", "#7", "7", f"{SOURCE.id}#7"])
def test_issue_is_released_by_any_of_its_names(cli: Cli, state: Path, name: str) -> None:
    apply(state, reserve(7), hold(7))
    released = cli("work", "release", name)

    assert (released.code, released.out) == (0, "acme/app#7 released\n")
    (row,) = cli("work", "--json").data
    assert (row["status"], row["outcome"]) == ("settling", "released")


def test_issue_that_is_not_there_and_one_of_several_are_refused(cli: Cli, state: Path) -> None:
    assert cli("work", "release", "#9").code == 3
    here = reserve(7)
    there = work_id("github:acme/other", 7)
    other = replace(here.item, id=there, source="github:acme/other")
    apply(state, here, replace(here, item=other))
    refused = cli("work", "release", "#7")

    assert refused.code == 3
    assert "may be" in refused.err


def test_release_says_what_comes_next(cli: Cli, state: Path) -> None:
    apply(state, reserve(7))
    assert "a daemon or worker takes it off" in cli("work", "release", "#7").err
    again = cli("work", "release", "#7")

    assert again.code == 5
    assert "is being settled already" in again.err
    assert cli("work", "release", "#7", "--force").out == "acme/app#7 released\n"
    (row,) = cli("work", "--json").data
    assert row["status"] == "released"


def test_status_says_why_no_issue_is_taken(cli: Cli, state: Path) -> None:
    apply(state, SetSourceState(state=LIMITED))

    text = "no issue of github:acme/app is taken: GitHub limits requests about acme/app; not asked before 2999"
    assert text in cli("status").out
    (row,) = cli("status", "--json").data["failing_work_sources"]
    assert (row["source"], row["status"]) == (SOURCE.id, "limited")
    assert text in cli("work").out


def test_status_says_nothing_of_a_source_that_is_not_declared(cli: Cli, state: Path) -> None:
    gone = SourceState(
        id="github:acme/gone", status=SourceStatus.MISSING, checked_at=at(1), error="No such thing"
    )
    apply(state, SetSourceState(state=gone))

    assert "acme/gone" not in cli("status").out


def test_doctor_says_which_token_is_missing_and_what_is_stuck(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(state, SetSourceState(state=LIMITED))
    assert "GitHub limits requests about acme/app" in cli("doctor").out
    monkeypatch.delenv("GITHUB_TOKEN")
    checked = cli("doctor")

    assert "no issue is taken: GITHUB_TOKEN is not set" in checked.out


def test_missing_token_is_told_with_its_place(
    cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    told = cli("worker", "--until-idle").err

    assert "nightherd.yaml:5:18: no issue of acme/app is taken: GITHUB_TOKEN is not set" in told


def test_schedule_why_says_where_its_work_comes_from(cli: Cli, state: Path) -> None:
    said = cli("schedule", "why", "grazer/nightly").out

    assert "it takes one issue of acme/app with the label 'ready' each time" in said
