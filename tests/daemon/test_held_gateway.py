"""A held session through the running fleet: every command answers as it does without it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.pasture import PATIENCE_S, TARGET, Pasture
from daemon.test_gateway import PLACES
from nightherd.cli import operations
from surfaces.drivers import Cli
from surfaces.test_held_sessions import FLEET

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
MakePasture = Callable[..., Pasture]

REFUSED = (
    "run planner -d -p more",
    "run planner -d -p more --priority 9",
    "run planner -d -p more --resume SESSION",
    "jobs retry DONE",
    "schedule run planner/nightly",
)
ACCEPTED = (
    "run planner -d -p more --branch",
    "run planner -d -p more --resume SESSION --branch",
    "session fork SESSION",
    "session fork SESSION --run -d -p more",
    "jobs fork HELD -d -p more",
)


def hold_session(cli: Cli, folder: Path, patch: pytest.MonkeyPatch) -> dict[str, str]:
    """One job that has ended, and one in the same session that waits for a person."""
    patch.chdir(folder)
    done = cli("run", "planner", "-p", "first", "--limit", "turns=1", "--json")
    assert cli("jobs", "cancel", done.data["job_id"]).code == 0
    held = cli("run", "planner", "-p", "second", "--limit", "turns=1", "--json")
    assert (done.code, held.code) == (6, 6)
    shown = cli("jobs", "show", held.data["job_id"], "--json").data
    return {"DONE": done.data["job_id"], "HELD": shown["id"], "SESSION": shown["session_id"]}


def play(
    cli: Cli, folder: Path, patch: pytest.MonkeyPatch, ids: dict[str, str], *flags: str
) -> list[tuple[str, int, str]]:
    """Return how every command ended and what it said, without ids and times."""
    patch.chdir(folder)
    played = []
    for command in (*REFUSED, *ACCEPTED):
        words = re.sub("|".join(ids), lambda name: ids[name[0]], command).split()
        result = cli(*words, *flags)
        text = f"{result.out}{result.err}".replace(str(folder), "FOLDER")
        for pattern, word in PLACES:
            text = pattern.sub(word, text)
        played.append((command, result.code, text))
    return played


def test_every_command_treats_a_held_session_the_same_with_the_running_fleet_and_without(
    make_pasture: MakePasture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(operations, "PATIENCE_S", PATIENCE_S)
    pasture = make_pasture(FLEET)
    (tmp_path / "alone").mkdir()
    alone = Pasture(tmp_path / "alone", pasture.server, FLEET)
    cli = Cli(monkeypatch, capsys)
    ids = [hold_session(cli, one.folder, monkeypatch) for one in (pasture, alone)]
    (daemon,) = pasture.server.begin(TARGET, pasture.order())
    pasture.wait_until_ready(daemon)

    with_it = play(cli, pasture.folder, monkeypatch, ids[0], "--json")
    without = play(cli, alone.folder, monkeypatch, ids[1], "--json")

    assert [code for _, code, _ in with_it] == [5] * len(REFUSED) + [0] * len(ACCEPTED)
    assert with_it[: len(REFUSED)] == without[: len(REFUSED)]
    assert [one[:2] for one in with_it] == [one[:2] for one in without]
    for _, _, text in with_it[: len(REFUSED)]:
        assert "session SESSION is held by JOB, which is suspended (limit)" in text
        assert "nightherd jobs resume JOB --raise turns=" in text
        assert "nightherd jobs cancel JOB" in text
        assert "--branch" in text
    shown = cli("jobs", "show", ids[1]["HELD"], "--json").data
    assert shown["status"] == "suspended", "nothing has moved the job that holds the session"
