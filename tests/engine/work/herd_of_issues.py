"""A fleet whose schedule takes issues of a loopback GitHub, on a memory store and a clock that tests move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import anyio
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.schedules.stall import NOON
from nightherd.engine.operations.perform import perform
from nightherd.engine.operations.requests import Resume, Retry, RunSchedule
from nightherd.engine.schedules.scheduler import Scheduler, SchedulingReports
from nightherd.engine.work.context import WorkContext
from nightherd.engine.work.intake import PATIENCE_S, Intake
from nightherd.engine.work.settler import Settler
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import Applied, Change
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import SettleExecution, StartExecution
from nightherd.model.jobs.job import ExitReason, Job, JobQuery
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.schedules.rule import Interval, Schedule
from nightherd.model.schedules.schedule import Slot
from nightherd.model.usage import Totals
from nightherd.model.work.item import WorkItem, work_id
from nightherd.model.work.source import SourceState, WorkSource
from nightherd.ports import Probe, no_probe
from nightherd.testing.determinism import CountingText, FakeClock
from nightherd.testing.github_api import TOKEN, GithubApi
from nightherd.testing.memory_state import MemoryStore
from nightherd.triggers.work.github import GithubTracker

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
REPO = "acme/app"
LOCKS = "refs/nightherd/issues"


def source_at(api: GithubApi, **more: Any) -> WorkSource:
    """The repository of the loopback GitHub."""
    return WorkSource(**{"repo": REPO, "base_url": api.url, **more})


def taking(source: WorkSource, **more: Any) -> Schedule:
    """A schedule that takes an issue each hour."""
    rule = Interval(every=HOUR)
    return Schedule(**{"name": "issues", "rule": rule, "prompt": "Fix it.", "work": source, **more})


async def no_rescue() -> None:
    """No worker is lost here."""


@dataclass
class Herd:
    """One process of a fleet; `beside` makes another one, of the same fleet or of another one."""

    api: GithubApi
    schedules: Sequence[Schedule]
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOON - HOUR, step=timedelta()))
    by: str = "worker-aaaaaaaa"
    name: str = "barn"
    store: MemoryStore = field(default_factory=MemoryStore)
    token: str = TOKEN
    random_text: CountingText = field(default_factory=CountingText)
    probe: Probe = no_probe
    patience_s: float = PATIENCE_S

    def __post_init__(self) -> None:
        named = {one.name: one for one in self.schedules}
        agent = replace(AGENT, schedules=named)
        self.fleet = Fleet(file="/f/nightherd.yaml", agents={agent.name: agent})
        self.bench = Bench(
            agent=agent,
            clock=self.clock,
            store=self.store,
            random_text=self.random_text,
            environment={"GITHUB_TOKEN": self.token},
        )
        self.reader = self.bench.reader
        self.requests = replace(
            self.bench.context,
            agents=self.fleet.agents,
            open_tracker=GithubTracker,
            fleet_name=self.name,
        )
        self.told: list[str] = []
        self.context = WorkContext(
            fleet=self.bench.context,
            open_tracker=GithubTracker,
            by=self.by,
            fleet_name=self.name,
            probe=self.probe,
        )
        reports = SchedulingReports(
            on_fire=lambda key, job: self.told.append(f"fired {key}"),
            on_skip=lambda key, reason: self.told.append(f"skipped {key}: {reason}"),
            on_trouble=self.told.append,
        )
        self.intake = Intake(self.context, patience_s=self.patience_s)
        self.settler = Settler(self.fleet, self.context, self.told.append)
        self.scheduler = Scheduler(self.fleet, self.bench.context, reports, intake=self.intake)

    def beside(self, **other: Any) -> Herd:
        """Another process on the same state and clock."""
        same = {"api": self.api, "schedules": self.schedules, "clock": self.clock}
        return Herd(**{**same, "store": self.store, "random_text": self.random_text, **other})

    def other_fleet(self, **other: Any) -> Herd:
        """A process of another fleet, with a state of its own."""
        return self.beside(
            **{"store": MemoryStore(), "by": "worker-zzzzzzzz", "name": "stable", **other}
        )

    def look(self) -> None:
        """One round of the scheduler."""
        anyio.run(self.scheduler.look)

    def take_in(self) -> None:
        """Find what is asked for."""

        async def main() -> None:
            async with anyio.create_task_group() as tasks:
                await self.intake.look(tasks)

        anyio.run(main)

    def slot(self, *, after: timedelta = HOUR) -> Slot:
        """Let a slot be due, and return it with its outcome."""
        self.look()
        self.clock.advance(after)
        self.decide()
        return self.slots()[-1]

    def decide(self) -> None:
        """What is due is looked for and decided."""
        self.look()
        self.take_in()
        self.clock.advance(SECOND)
        self.look()
        self.take_in()

    def settle(self, *, after: timedelta = timedelta()) -> None:
        """One round of the settler."""
        self.clock.advance(after)
        anyio.run(self.settler.look)

    def perform(self, request: Retry | Resume | RunSchedule) -> Job:
        """Carry out what a person asks for."""

        async def main() -> Job:
            return await perform(request, self.requests, rescue=no_rescue)

        return anyio.run(main)

    def slots(self) -> list[Slot]:
        """Oldest first."""
        return list(reversed(self.reader.list_slots("coder/issues", 1_000)))

    def jobs(self) -> list[Job]:
        """Oldest first."""
        return list(reversed(self.reader.list_jobs(JobQuery(limit=1_000))))

    def item(self, number: int = 7) -> WorkItem:
        (source,) = {one.work.id for one in self.schedules if one.work is not None}
        found = self.reader.find_work_item(work_id(source, number))
        assert found is not None
        return found

    def source_state(self) -> SourceState:
        (state,) = self.reader.list_work_sources()
        return state

    def apply(self, *changes: Change) -> None:
        for answer in anyio.run(self.store.apply, changes):
            assert isinstance(answer, Applied), answer

    def start(self, job: Job) -> None:
        self.apply(StartExecution(job_id=job.id, worker=WorkerId("worker-1"), at=self.clock.now()))

    def finish(
        self,
        job: Job,
        *,
        answer: str = "Mended.",
        error: str | None = None,
        cancelled: bool = False,
    ) -> None:
        """The job is run to its end."""
        self.start(job)
        reason = ExitReason.SUCCESS if error is None else ExitReason.ERROR
        if cancelled:
            reason = ExitReason.CANCELLED
        nothing = Totals()
        self.apply(
            SettleExecution(
                job_id=job.id,
                epoch=1,
                at=self.clock.now(),
                outcome=Outcome(exit_reason=reason, error=error),
                answer=answer,
                last_seq=1,
                total=nothing,
                own=nothing,
            )
        )


def working(api: GithubApi, **more: Any) -> tuple[Herd, Job]:
    """A herd that works on issue 7."""
    herd = Herd(api, [taking(source_at(api, **more))])
    herd.slot()
    return herd, herd.jobs()[-1]
