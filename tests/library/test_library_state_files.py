"""`state.json` for programs: loaded, validated and saved, and a job resumed from its journal."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from nightherd import (
    Order,
    StateFileError,
    load_state,
    open_fleet,
    resume_from_state,
    save_state,
    validate_state,
)
from nightherd.errors import InvalidValueError

FLEET = """\
agents:
  - name: bounded
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    script:
      - repeat: 2
        steps: [{say: "on"}, {usage: {input_tokens: 1, output_tokens: 1}}]
      - say: done
"""


@pytest.fixture
def job(tmp_path: Path) -> str:
    """A job that is suspended at its limit."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)

    async def run() -> str:
        async with open_fleet(tmp_path / "nightherd.yaml") as fleet:
            return (await fleet.execute(Order(agent="bounded"))).job_id

    return anyio.run(run)


def test_a_state_is_loaded_saved_and_validated(tmp_path: Path, job: str) -> None:
    root = tmp_path / ".nightherd"
    loaded = load_state(root, job)
    path = root / "threads" / job / "state.json"
    path.unlink()

    saved = save_state(root, job)

    assert (loaded["thread_id"], loaded["status"]) == (job, "suspended")
    assert saved == path
    assert {**load_state(root, "@last"), "saved_at": ""} == {**loaded, "saved_at": ""}
    validate_state(root, loaded)
    with pytest.raises(InvalidValueError, match="status: 'asleep'"):
        validate_state(root, {**loaded, "status": "asleep"})


def test_a_job_is_resumed_from_its_journal_whatever_the_messages_in_the_file_say(
    tmp_path: Path, job: str
) -> None:
    root = tmp_path / ".nightherd"
    path = root / "threads" / job / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "messages": []}))

    result = anyio.run(resume_from_state, root, job)

    assert (result.job_id, result.job.epoch) == (job, 2)
    document = load_state(root, job)
    assert (document["status"], document["turn_number"]) == ("suspended", 1), (
        "the limit still holds"
    )
    assert [one["content"] for one in document["messages"]][:2] == ["go", "on"]


def test_a_job_whose_file_is_damaged_is_not_resumed(tmp_path: Path, job: str) -> None:
    root = tmp_path / ".nightherd"
    path = root / "threads" / job / "state.json"
    path.write_text(path.read_text()[:100])

    with pytest.raises(StateFileError, match="cannot be used"):
        anyio.run(resume_from_state, root, job)
    path.unlink()
    with pytest.raises(StateFileError, match="cannot be used"):
        anyio.run(resume_from_state, root, job)

    save_state(root, job)
    assert load_state(root, job)["status"] == "suspended"
