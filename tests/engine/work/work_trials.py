"""Work sources as trials of the fork server: a scheduler that takes issues, and one that is killed at a step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio

from engine.schedules.stall import NOON
from engine.work.herd_of_issues import HOUR, Herd, source_at, taking
from nightherd.engine.schedules.scheduler import Scheduler, SchedulingReports
from nightherd.model.change import Answer, Change
from nightherd.model.jobs.job import JobStatus
from nightherd.model.work.item import WorkStatus
from nightherd.ports import Probe
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import CountingText, FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.github_api import GithubApi
from nightherd.testing.memory_state import MemoryStore
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from nightherd.wiring.work import make_work

SCHEDULE = f"{__name__}:schedule"
STEPS = f"{__name__}:steps"


def schedule(order: Any, say: Say) -> None:
    """Take issues in `order["folder"]` until killed."""
    folder = Path(order["folder"])
    fleet = load_fleet(folder / "nightherd.yaml", environ={}, cwd=folder).fleet

    async def work() -> None:
        async with open_worker(folder / ".nightherd", fleet, os.environ) as context:
            reports = SchedulingReports(
                on_fire=lambda key, job: say(f"fired {key} {job}"),
                on_trouble=lambda text: say(f"trouble {text}"),
            )
            intake, settler = make_work(fleet, context, context.worker, say)
            scheduler = Scheduler(fleet, context, reports, intake=intake)
            intake.wake_with(scheduler.wake)
            say("ready")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(intake.run)
                tasks.start_soon(settler.run)
                await scheduler.run()

    anyio.run(work)


class DiskStore:
    """A store that is opened for each change, as each process would."""

    def __init__(self, root: Path, clock: FakeClock) -> None:
        self._root, self._clock = root, clock

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """Apply the changes."""
        store = SqliteStore(self._root, self._clock)
        try:
            return await store.apply(changes)
        finally:
            await store.close()

    def reader(self) -> SqliteReader:
        """Questions about what is there."""
        return SqliteReader(self._root)


@dataclass(frozen=True)
class Elsewhere:
    """The address of a loopback GitHub that another process runs."""

    url: str


def herd_at(order: Any, probe: Probe) -> Herd:
    """A process that begins so many minutes after noon less an hour."""
    clock = FakeClock(NOON - HOUR + HOUR * order["hours"], step=HOUR * 0)
    text = CountingText()
    for _ in range(1_000 * order["hours"]):
        text(1)  # what another process was given is not given again
    api = cast("GithubApi", Elsewhere(order["url"]))
    source = source_at(api, done="done", max_attempts=9)
    return Herd(
        api,
        [taking(source)],
        clock=clock,
        by=f"worker-{order['by']}",
        store=cast("MemoryStore", DiskStore(Path(order["folder"]), clock)),
        random_text=text,
        probe=probe,
    )


def steps(order: Any, say: Say) -> None:
    """Take an issue, work on it and settle it; end at the `nth` step, or say each of them."""

    def tell(point: str, /) -> None:
        say(point)

    probe: Probe = Ending(nth=order["nth"]) if order["nth"] else tell
    herd = herd_at(order, probe)
    herd.settle()
    herd.slot()
    for job in herd.jobs():
        if job.status is JobStatus.PENDING:
            herd.finish(job, error="It broke" if order["fails"] else None)
    herd.settle()
    herd.settle()
    if order["nth"] == 0 and not order["fails"]:
        assert herd.item().status is WorkStatus.DONE, herd.item()
