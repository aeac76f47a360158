"""What a running job takes of memory: 500 of them at once in one process, each in the middle of its script."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path

import anyio

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
from nightherd.model.agents.agent import Fleet
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import Event, ToolResultEvent
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import make_worker_loop, open_worker

AT_ONCE = 500
WARM_UP = 20
LIMIT_KB = 200

FLEET = f"""\
fleet:
  name: memory
agents:
  - name: brief
    runtime: scripted
    default_prompt: go
    instances: {{max_concurrent: {WARM_UP}}}
    script:
      - say: done
  - name: patient
    runtime: scripted
    default_prompt: go
    instances: {{max_concurrent: {AT_ONCE}}}
    script:
      - say: beginning
      - tool: Read
        input: {{file_path: nightherd.yaml}}
      - sleep: 1h
      - say: done
"""


def resident_kb() -> float:
    """The process's own memory that is in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


class Watcher:
    """Knows how many jobs have ended, and how many have come to the middle of their script."""

    def __init__(self) -> None:
        self.are_warm = anyio.Event()
        self.are_asleep = anyio.Event()
        self._ended = 0
        self._asleep: set[str] = set()

    def reports(self) -> WorkerReports:
        def nothing(*_: object) -> None:
            """Nobody watches."""

        return WorkerReports(
            on_start=nothing,
            on_event=self.note,
            on_end=self.end,
            on_rescue=nothing,
            on_trouble=print,
        )

    def note(self, job: Job, event: Event) -> None:
        if job.agent == "patient" and isinstance(event, ToolResultEvent):
            self._asleep.add(job.id)
            if len(self._asleep) == AT_ONCE:
                self.are_asleep.set()

    def end(self, _: Job) -> None:
        self._ended += 1
        if self._ended == WARM_UP:
            self.are_warm.set()


async def hand_in(fleet: Fleet, context: WorkerContext, agent: str, count: int) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(record_job, JobDraft(agent=fleet.agents[agent]), context)


async def kb_per_job(folder: Path) -> float:
    (folder / "nightherd.yaml").write_text(FLEET)
    fleet = load_fleet(folder / "nightherd.yaml", environ={}, cwd=folder).fleet
    watcher = Watcher()
    async with open_worker(folder / ".nightherd", fleet, os.environ) as context:
        shift: WorkerLoop = make_worker_loop(
            fleet, context, watcher.reports(), leaves_when_idle=False
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shift.work)
            await hand_in(fleet, context, "brief", WARM_UP)
            await watcher.are_warm.wait()
            before = resident_kb()
            await hand_in(fleet, context, "patient", AT_ONCE)
            await watcher.are_asleep.wait()
            await anyio.sleep(2.0)  # the mirror has written of all of them
            grown = resident_kb() - before
            shift.cancel()
    return grown / AT_ONCE


def main() -> None:
    """Prints what one job takes."""
    with tempfile.TemporaryDirectory() as folder:
        each = anyio.run(kb_per_job, Path(folder))
    print(f"a running scripted job takes {each:.0f} KB, {AT_ONCE} of them in one process")
    print(f"memory of a running job against {LIMIT_KB} KB: {each / LIMIT_KB:.2f}x (limit 1x)")


if __name__ == "__main__":
    main()
