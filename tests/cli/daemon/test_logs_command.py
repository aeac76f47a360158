"""`nightherd logs`: what happened to whom, for people and for programs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from surfaces.drivers import FLEET, Cli, Shell


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_jobs_of_every_agent_are_told_in_order(fleet: Path, cli: Cli) -> None:
    cli("run", "hello", "-q")
    cli("run", "failing", "-q")

    told = cli("logs")
    one = cli("logs", "failing")

    assert told.code == one.code == 0
    assert [text.split()[1:3] for text in told.out.splitlines()] == [
        ["job.started", "hello"],
        ["job.ended", "hello"],
        ["job.started", "failing"],
        ["job.error", "failing"],
        ["job.ended", "failing"],
    ]
    assert "No luck today." in one.out
    assert "hello" not in one.out


def test_programs_get_a_document_for_each_line(fleet: Path, cli: Cli) -> None:
    cli("run", "hello", "-q")

    told = cli("logs", "--json", "-n", "1")

    (document,) = told.documents
    assert document["schema"] == "nightherd/v1/log"
    assert (document["data"]["event"], document["data"]["agent"]) == ("job.ended", "hello")


def test_lines_are_chosen_by_age_and_number(fleet: Path, cli: Cli) -> None:
    cli("run", "hello", "-q")

    assert len(cli("logs", "--since", "1h").out.splitlines()) == 2
    assert cli("logs", "--since", "2100-01-01").out == ""
    assert len(cli("logs", "--since", "2000-01-01T00:00:00Z", "-n", "1").out.splitlines()) == 1
    wrong = cli("logs", "--since", "yesterday")
    assert (wrong.code, "neither an age" in wrong.err) == (2, True)


def test_an_agent_nothing_was_logged_about_is_not_found(fleet: Path, cli: Cli) -> None:
    assert cli("logs").out == ""

    answer = cli("logs", "hello")

    assert answer.code == 3
    assert "nothing has been logged about 'hello' yet" in answer.err


def test_a_terminal_is_not_obeyed_from_a_log(fleet: Path, cli: Cli) -> None:
    logs = fleet / ".nightherd" / "logs"
    logs.mkdir(parents=True)
    line = {"at": "2026-11-15T03:00:00Z", "event": "x", "message": "a\x1b[2Jb"}
    (logs / "nightherd.log").write_text(json.dumps(line) + "\n")

    assert "\x1b" not in cli("logs").out


def test_following_shows_what_comes(fleet: Path, cli: Cli) -> None:
    shell = Shell(fleet)
    try:
        cli("run", "hello", "-q")
        followed = shell.start("logs", "-f", stdout=subprocess.PIPE)
        assert followed.stdout is not None
        first = [followed.stdout.readline() for _ in range(2)]
        cli("run", "failing", "-q")
        later = [followed.stdout.readline() for _ in range(3)]
    finally:
        shell.close()

    assert b"job.started hello" in first[0]
    assert b"job.started failing" in later[0]
    assert b"job.ended failing" in later[2]
