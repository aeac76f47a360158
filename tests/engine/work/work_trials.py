"""Work sources as trials of the fork server: a scheduler that takes issues, and one that is killed at a step."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
from msgspec.structs import replace

from engine.schedules.stall import NOON
from engine.work.herd_of_issues import HOUR, Herd, source_at, taking
from nightherd.engine.operations.requests import Retry, RunSchedule
from nightherd.engine.schedules.scheduler import Scheduler, SchedulingReports
from nightherd.engine.work.on_request import settle_job
from nightherd.model.change import Answer, Change
from nightherd.model.jobs.job import JobStatus
from nightherd.model.work.item import WorkStatus
from nightherd.model.work.source import WorkSource
from nightherd.ports import Probe, no_probe
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import CountingText, FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.github_api import GithubApi
from nightherd.testing.memory_state import MemoryStore
from nightherd.triggers.work.github import GithubTracker
from nightherd.triggers.work.http import HttpAnswer, make_exchange
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from nightherd.wiring.work import make_work

SCHEDULE = f"{__name__}:schedule"
STEPS = f"{__name__}:steps"
REQUESTS = f"{__name__}:requests"


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


class EndingTracker(GithubTracker):
    """Ends the process after the call `nth` to GitHub, or says each of them."""

    def __init__(self, source: WorkSource, token: Callable[[], str], end: Probe) -> None:
        super().__init__(source, token, self._exchange_and_end)
        self._end = end
        self._send = make_exchange(source.base_url)

    async def _exchange_and_end(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpAnswer:
        answer = await self._send(method, path, headers, body)
        self._end(f"{method} {path.partition('?')[0]}")
        return answer


def requests(order: Any, say: Say) -> None:
    """Take an issue on request, fail, retry it, and settle it as a command does; end after call `nth`, or say each."""

    def tell(point: str, /) -> None:
        say(point)

    end: Probe = Ending(nth=order["nth"]) if order["nth"] else tell
    herd = herd_at(order, no_probe)
    herd.requests = replace(
        herd.requests, open_tracker=lambda source, token: EndingTracker(source, token, end)
    )
    first = herd.perform(RunSchedule(agent="coder", schedule="issues"))
    herd.finish(first, error="It broke")
    second = herd.perform(Retry(job_id=first.id))
    herd.finish(second)
    anyio.run(settle_job, herd.bench.job(second.id), herd.requests, say)
