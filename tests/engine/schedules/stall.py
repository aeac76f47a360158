"""A scheduler on a memory store and a clock that tests move: one round at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from nightherd.engine.schedules.scheduler import Scheduler, SchedulingReports
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import Change
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import SettleExecution, StartExecution
from nightherd.model.jobs.job import ExitReason, Job, JobQuery
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.schedules.rule import Interval, Schedule
from nightherd.model.schedules.schedule import OverrideSchedule, ScheduleState, Slot, schedule_id
from nightherd.model.usage import Totals
from nightherd.testing.determinism import FakeClock

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
HOURLY = Schedule(name="hourly", rule=Interval(every=timedelta(hours=1)), prompt="Graze.")


def fleet(*schedules: Schedule, agents: Sequence[str] = ("coder",), **more: Any) -> Fleet:
    """Agents that all have these schedules."""
    named = {one.name: one for one in schedules}
    made = [replace(AGENT, name=name, schedules=named, **more) for name in agents]
    return Fleet(file="nightherd.yaml", agents={agent.name: agent for agent in made})


@dataclass
class Stall:
    """One state, and as many schedulers on it as a test wants."""

    declared: Fleet = field(default_factory=lambda: fleet(HOURLY))
    at: datetime = NOON - timedelta(hours=1)

    def __post_init__(self) -> None:
        self.clock = FakeClock(self.at, step=timedelta())
        self.bench = Bench(clock=self.clock)
        self.told: list[str] = []
        self.scheduler = self.make()

    def make(self, declared: Fleet | None = None, **more: Any) -> Scheduler:
        """Another scheduler on the same state, as after a restart."""
        reports = SchedulingReports(
            on_fire=lambda key, job: self.told.append(f"fired {key}"),
            on_skip=lambda key, reason: self.told.append(f"skipped {key}: {reason}"),
            on_trouble=self.told.append,
        )
        return Scheduler(declared or self.declared, self.bench.context, reports, **more)

    def look(self, *, after: timedelta = timedelta(), scheduler: Scheduler | None = None) -> None:
        """Let time pass, then one round."""
        self.clock.advance(after)
        anyio.run((scheduler or self.scheduler).look)

    def apply(self, *changes: Change) -> None:
        anyio.run(self.bench.store.apply, changes)

    def override(self, name: str = "hourly", **said: Any) -> None:
        change = OverrideSchedule(
            agent="coder", schedule=name, at=self.clock.now(), by="somebody", **said
        )
        self.apply(change)

    def restart(self, declared: Fleet | None = None) -> None:
        self.scheduler = self.make(declared)

    def slots(self, key: str = "coder/hourly") -> list[Slot]:
        """Oldest first."""
        return list(reversed(self.bench.reader.list_slots(key, 10_000)))

    def jobs(self) -> list[Job]:
        """Oldest first."""
        return list(reversed(self.bench.reader.list_jobs(JobQuery(limit=10_000))))

    def state(self, name: str = "hourly", agent: str = "coder") -> ScheduleState:
        states = {state.id: state for state in self.bench.reader.list_schedules(agent)}
        return states[schedule_id(agent, name)]

    def finish(self, job: Job, *, error: str | None = None) -> Job:
        """The job is run to its end: well, or with an error."""
        reason = ExitReason.SUCCESS if error is None else ExitReason.ERROR
        at, nothing = self.clock.now(), Totals()
        self.apply(
            StartExecution(job_id=job.id, worker=WorkerId("worker-1"), at=at),
            SettleExecution(
                job_id=job.id,
                epoch=1,
                at=at,
                outcome=Outcome(exit_reason=reason, error=error),
                last_seq=1,
                total=nothing,
                own=nothing,
            ),
        )
        return self.bench.job(job.id)
