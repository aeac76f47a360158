"""A held session in the library: a job waits, is refused, or runs in a branch, as its order says."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd import JobQuery, Order, open_fleet
from nightherd.errors import RefusedError
from nightherd.library.fleet import OpenFleet
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.next_step import Action, NextStep

FLEET = """\
agents:
  - name: planner
    runtime: scripted
    default_prompt: plan
    session: {mode: persistent}
    script: [{repeat: 2, steps: [{say: "${prompt}"}, {usage: {output_tokens: 1}}]}]
"""


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    file = tmp_path / "nightherd.yaml"
    file.write_text(FLEET)
    return file


async def hold(fleet: OpenFleet) -> Job:
    """A job that waits for a person after its first turn."""
    limits = {"limits": {"turns": 1}}
    result = await fleet.execute(Order(agent="planner", prompt="first", overrides=limits))
    job = fleet.job(result.job_id)
    assert job.status is JobStatus.SUSPENDED
    return job


def test_an_order_is_refused_or_waits_or_branches_as_it_says(fleet_file: Path) -> None:
    async def main() -> None:
        async with open_fleet(fleet_file) as fleet:
            held = await hold(fleet)
            for resume in (None, held.session_id):
                order = Order(agent="planner", prompt="more", resume=resume, if_held="refuse")
                with pytest.raises(RefusedError, match=f"is held by {held.id}") as refused:
                    await fleet.submit(order)
                assert refused.value.next_step is not None
                assert refused.value.next_step.action is Action.RAISE_JOB_LIMIT
                assert NextStep(Action.CANCEL_JOB, job=held.id) in refused.value.alternatives
                assert len(fleet.jobs(JobQuery())) == (1 if resume is None else 3)
                waits = await fleet.submit(Order(agent="planner", prompt="more", resume=resume))
                assert (waits.status, waits.session_id) == (JobStatus.PENDING, held.session_id)

                aside = Order(
                    agent="planner", prompt="aside", resume=resume, branch=True, if_held="refuse"
                )
                result = await fleet.execute(aside)
                branched = fleet.job(result.job_id)
                assert (branched.status, branched.forked_from) == (JobStatus.COMPLETED, held.id)
                assert branched.session_id != held.session_id

    anyio.run(main)
