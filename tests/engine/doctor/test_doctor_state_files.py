"""`threads/<job>/state.json`: one that was damaged, or is another job's, is found, kept and written again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.doctor.ward import Ward

BOUNDED = """
  - name: bounded
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    script:
      - repeat: 2
        steps: [{say: on}, {usage: {input_tokens: 1, output_tokens: 1}}]
"""
OTHER = "job-2026-01-01-zzzzzz"


def of_version(path: Path, version: str) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": version}))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:200]), "not JSON"),
        (lambda path: path.write_text(""), "not JSON"),
        (
            lambda path: path.write_text(path.read_text().replace('"error"', '"sleeping"')),
            "status: 'sleeping' is not one of",
        ),
        (
            lambda path: path.write_text(path.read_text().replace(path.parent.name, OTHER)),
            f"the state of {OTHER}, not of",
        ),
        (lambda path: of_version(path, "9.0.0"), "a state.json of version '9.0.0'"),
    ],
    ids=["cut", "empty", "edited", "another's", "newer"],
)
def test_a_document_that_nobody_can_use_is_kept_aside_and_written_again(
    ward: Ward, damage: Callable[[Path], object], why: str
) -> None:
    job = ward.run("failing")
    path = ward.root / "threads" / job / "state.json"
    whole = json.loads(path.read_text())
    damage(path)
    broken = path.read_bytes()

    quick = ward.doctor()
    found = ward.doctor("--verify")
    fixed = ward.doctor("--verify", "--fix")

    assert quick.all == [], "only reading everything finds it"
    assert why in found.only("state-files")["message"]
    assert (found.result.code, fixed.all) == (0, [])
    (aside,) = path.parent.glob("state.json.corrupt-*")
    assert aside.read_bytes() == broken
    assert {**json.loads(path.read_text()), "saved_at": ""} == {**whole, "saved_at": ""}


def test_a_file_of_a_suspended_job_that_could_not_be_written_is_found_without_reading_everything(
    ward: Ward,
) -> None:
    fleet = ward.root.parent / "nightherd.yaml"
    fleet.write_text(fleet.read_text() + BOUNDED)
    job = ward.run("bounded")
    path = ward.root / "threads" / job / "state.json"
    whole = json.loads(path.read_text())
    assert whole["status"] == "suspended"
    path.write_text(json.dumps({**whole, "status": "running", "turn_number": 0}))
    behind = ward.doctor()
    path.unlink()

    missing, fixed = ward.doctor(), ward.doctor("--fix")

    assert "is behind" in behind.only("suspended-state-files")["message"]
    assert "there is no state.json" in missing.only("suspended-state-files")["message"]
    assert fixed.all == []
    assert {**json.loads(path.read_text()), "saved_at": ""} == {**whole, "saved_at": ""}


def test_a_file_of_an_ended_job_that_could_not_be_written_is_found(ward: Ward) -> None:
    job = ward.run("failing")
    path = ward.root / "threads" / job / "state.json"
    path.unlink()

    found, fixed = ward.doctor("--verify"), ward.doctor("--verify", "--fix")

    assert "there is no state.json" in found.only("state-files")["message"]
    assert fixed.all == []
    assert json.loads(path.read_text())["status"] == "error"
