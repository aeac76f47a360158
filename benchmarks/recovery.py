"""What a crash costs: a thousand jobs whose worker is gone, from the beginning of the rescue until all wait again."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import anyio

from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.engine.workers.rescue import rescue
from nightherd.model.agents.agent import Fleet
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.wiring.executions import ending_of_executions
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker, rescue_terms
from nightherd.wiring.stores import open_repair

LOST = 1_000
IN_FLIGHT = 64
ROUNDS = 3

FLEET = """\
fleet:
  name: recovery
agents:
  - name: empty
    runtime: scripted
    default_prompt: go
    script:
      - say: done
"""


def make_fleet(folder: Path) -> Fleet:
    folder.mkdir()
    (folder / "nightherd.yaml").write_text(FLEET)
    return load_fleet(folder / "nightherd.yaml", environ={}, cwd=folder).fleet


async def lose_many(folder: Path, fleet: Fleet) -> None:
    """Jobs that a worker had begun which is not there any more."""
    async with open_worker(folder / ".nightherd", fleet, os.environ) as context:
        request = JobDraft(agent=fleet.agents["empty"])

        async def lane(share: int) -> None:
            for _ in range(share):
                await record_job(request, context)

        async with anyio.create_task_group() as tasks:
            for place in range(IN_FLIGHT):
                tasks.start_soon(lane, len(range(place, LOST, IN_FLIGHT)))
        waiting = context.reader.list_jobs(JobQuery(limit=LOST))
        at = context.clock.now()
        gone = WorkerId("worker-gonegone")
        await context.state.apply(
            [StartExecution(job_id=job.id, worker=gone, at=at) for job in waiting]
        )


async def rescue_seconds(folder: Path) -> float:
    async with open_repair(folder / ".nightherd") as record:
        begun = time.perf_counter()
        rescued = await rescue(record, rescue_terms(ending_of_executions(folder / ".nightherd"), 5))
        elapsed = time.perf_counter() - begun
        waiting = record.reader.list_jobs(JobQuery(status=JobStatus.PENDING, limit=2 * LOST))
    if len(rescued) != LOST or {(job.restart_count, job.epoch) for job in waiting} != {(1, 1)}:
        raise SystemExit(f"{len(rescued)} of {LOST} jobs were rescued, or not once")
    return elapsed


def main() -> None:
    """Prints the least time."""
    least = float("inf")
    with tempfile.TemporaryDirectory() as root:
        for number in range(ROUNDS):
            folder = Path(root) / f"lost-{number}"
            anyio.run(lose_many, folder, make_fleet(folder))
            least = min(least, anyio.run(rescue_seconds, folder))
    print(f"{LOST:,} interrupted jobs wait again, each once: {least:.2f} s (limit 1 s)")


if __name__ == "__main__":
    main()
