"""`doctor --verify`: rows that the ledger does not give again are found, and nothing else is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.doctor.ward import Ward, wait_until

BUSY = """
import os
from pathlib import Path
import anyio
from nightherd.wiring.fleets import load_fleet
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.wiring.running import open_worker

async def main():
    here = Path.cwd()
    fleet = load_fleet(here / "nightherd.yaml", environ={}, cwd=here).fleet
    agent = fleet.agents["echo"]
    count = 0
    while not Path("stop").exists():
        async with open_worker(here / ".nightherd", fleet, os.environ) as context:
            for _ in range(5):
                request = JobDraft(agent=agent, prompt="on and on")
                job = (await record_job(request, context)).job
                await run_job(job.id, agent, context, on_event=lambda event: None)
                count += 1
        Path("done").write_text(str(count))

anyio.run(main)
"""


@pytest.mark.parametrize(
    ("statement", "table", "word"),
    [
        ("UPDATE jobs SET status = 'cancelled' WHERE agent = 'failing'", "jobs", "status"),
        ("UPDATE jobs SET cost_microusd = 7 WHERE agent = 'hello'", "jobs", "cost_microusd"),
        ("UPDATE job_texts SET prompt = 'another' WHERE prompt = 'go'", "job_texts", "prompt"),
        ("DELETE FROM agents WHERE name = 'hello'", "agents", "does not have it"),
        (
            "INSERT INTO agents (name, status) VALUES ('aaa', 'idle')",
            "agents",
            "but not in the ledger",
        ),
    ],
)
def test_row_altered_by_hand_is_found_and_put_right_by_a_rebuild(
    statement: str, table: str, word: str, used: Ward
) -> None:
    rows = used.rows()
    used.alter(statement)
    used.clean()

    found = used.doctor("--verify")

    assert found.result.code == 1
    (one,) = found.of("agreement")
    assert one["message"].startswith(f"{table} ")
    assert word in one["message"]
    used.doctor("--rebuild")
    assert used.rows() == rows
    used.clean("--verify")


def test_secret_of_a_row_is_not_told_with_the_difference(used: Ward) -> None:
    used.alter("UPDATE job_texts SET prompt = 'hush' WHERE prompt = 'go'")

    assert "hush" not in used.doctor("--verify").result.out


def test_doctor_is_right_while_another_process_works(used: Ward) -> None:
    directory = used.root.parent
    working = subprocess.Popen([sys.executable, "-c", BUSY], cwd=directory)
    try:
        wait_until((directory / "done").exists, "no job was done")
        for _ in range(4):
            found = used.doctor("--verify")
            assert (found.result.code, found.found) == (0, []), repr(found.found)
            assert working.poll() is None
    finally:
        (directory / "stop").touch()
        assert working.wait() == 0

    jobs = used.jobs()
    assert len(jobs) >= int((directory / "done").read_text())
    assert {job["status"] for job in jobs if job["agent"] == "echo"} == {"completed"}
    used.clean("--verify")
