"""`threads/<job>/state.json`: one that was damaged, or is another job's, is found, kept and written again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.ward import Ward

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
