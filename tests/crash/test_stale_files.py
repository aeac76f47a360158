"""A command killed between its change and the readable files: the next command brings them up to date."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from crash.ground import Ground, Place, is_killed, places

FLEET = """\
agents:
  - name: bounded
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    script:
      - repeat: 2
        steps: [{say: on}, {usage: {input_tokens: 1, output_tokens: 1}}]
"""
COMMITTED = "db.after_commit"
"""The change is committed; neither the ledger nor the files have it."""
RECORDED = "ledger.appended"
"""The ledger has the change; the files do not."""
CALLS = 9
"""System calls from the end of the command that are tried: the refresh of its files is the last it does."""

MakeGround = Callable[[str], Ground]


@pytest.fixture
def ground(make_ground: MakeGround) -> Ground:
    """A fleet with one suspended job."""
    ground = make_ground(FLEET)
    assert ground.run("bounded", "a").status == 6, ground.shown()
    return ground


def job_file(ground: Ground) -> dict[str, Any]:
    (path,) = (ground.state / "jobs").glob("*.yaml")
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def kill_cancel_at(ground: Ground, point: str) -> None:
    """Cancel the suspended job, and kill the command at `point` when the job is cancelled by its row."""
    job_id = job_file(ground)["id"]
    with ground.copied() as trial:
        passed = places(trial.command("jobs", "cancel", job_id).said)
    (*_, last) = [place for place in passed if place.point == point]
    assert is_killed(ground.command("jobs", "cancel", job_id, place=Place(last.point, last.nth)))
    assert job_file(ground)["status"] == "running", "the files do not have it yet"


def findings(ground: Ground, *arguments: str) -> list[dict[str, Any]]:
    """What the doctor says of the readable files."""
    assert ground.command("doctor", "--json", *arguments).status == 0, ground.shown()
    checks = json.loads(ground.shown())["data"]["checks"]
    found: list[dict[str, Any]] = next(one["findings"] for one in checks if one["name"] == "mirror")
    return found


@pytest.mark.parametrize("point", [COMMITTED, RECORDED])
@pytest.mark.parametrize("reader", ["jobs", "status", "session", "checkpoint list @last"])
def test_the_next_reader_brings_them_up_to_date(ground: Ground, point: str, reader: str) -> None:
    kill_cancel_at(ground, point)

    assert ground.command(*reader.split()).status == 0, ground.shown()

    assert job_file(ground)["status"] == "cancelled"


def test_doctor_finds_stale_files_and_fixes_them(ground: Ground) -> None:
    kill_cancel_at(ground, RECORDED)

    (found,) = findings(ground)

    assert (found["level"], found["is_fixed"]) == ("warning", False)
    assert "behind" in found["message"]
    assert found["is_fixable"]
    assert job_file(ground)["status"] == "running", "the doctor only looked"
    (fixed,) = findings(ground, "--fix")
    assert fixed["is_fixed"]
    assert job_file(ground)["status"] == "cancelled"
    assert findings(ground) == []


def test_killed_at_any_place_of_the_refresh_the_next_reader_finishes_it(ground: Ground) -> None:
    job_id = job_file(ground)["id"]
    with ground.copied() as trial:
        said = trial.command("jobs", "cancel", job_id, is_by_calls=True).said
    for nth in range(len(said) - CALLS, len(said) + 1):
        with ground.copied() as trial:
            assert is_killed(trial.command("jobs", "cancel", job_id, is_by_calls=True, nth=nth)), (
                nth
            )
            assert trial.command("jobs").status == 0, trial.shown()
            assert job_file(trial)["status"] == "cancelled", said[nth - 1]
            assert findings(trial) == [], said[nth - 1]
