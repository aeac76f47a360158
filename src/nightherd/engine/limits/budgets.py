"""Budgets: what a job shares with others, of a day, of the whole fleet, or of the tree it belongs to.

A job that shares a budget counts what it uses as it goes, in one transaction with asking whether there is
more: however many run at once, what they have used and set aside together never goes beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores, WorkerContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.errors import FencedError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Refused, Why
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobTexts
from nightherd.model.jobs.options import ParentLimits
from nightherd.model.limits.limits import (
    COUNTED,
    NO_DAY_LIMITS,
    NO_LIMITS,
    DayLimits,
    Hit,
    LimitName,
    Limits,
    OnLimit,
    Scope,
    Used,
)
from nightherd.model.limits.spending import Budget, CountUsage, day_of
from nightherd.model.schedules.jobs import for_schedule
from nightherd.model.workflows.run import RUN_PREFIX, RunId


class Daily(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a day, and whose they are."""

    scope: Scope
    limits: DayLimits
    outcomes: Mapping[LimitName, OnLimit] = msgspec.field(default_factory=dict)
    agent: str | None = None
    schedule: str | None = None

    def budgets(self, day: str) -> Iterator[Budget]:
        """What is left to be kept on that day."""
        for name in COUNTED:
            maximum = self.limits.maximum(name)
            if maximum is not None:
                yield Budget(
                    scope=self.scope,
                    name=name,
                    maximum=maximum,
                    day=day,
                    agent=self.agent,
                    schedule=self.schedule,
                    outcome=self.outcomes.get(name, OnLimit.SUSPEND),
                )


class SharedBudget:
    """What one execution may use of what its job shares with others."""

    def __init__(
        self, job: Job, agent: Agent, texts: JobTexts, recorder: Recorder, context: WorkerContext
    ) -> None:
        self._job = job
        self._recorder = recorder
        self._context = context
        self._within = texts.overrides.within
        above = days_above(self._within, context)
        days = (*daily_limits(agent, job.schedule, context.budget), *above)
        # An agent may be above itself: its day is one.
        self._days = tuple({(day.scope, day.agent, day.schedule): day for day in days}.values())
        self._lasting = self._budgets_that_last()

    @property
    def is_shared(self) -> bool:
        """Whether there is anything to be counted."""
        return bool(self._lasting or self._days)

    @property
    def limits_spending(self) -> bool:
        """Whether one of the budgets is of dollars."""
        return any(one.name is LimitName.SPEND for one in self._lasting) or any(
            day.limits.spend is not None for day in self._days
        )

    async def count(self, asked: Used, at: datetime) -> Hit | None:
        """Count what the job has used so far and set aside what it asks for; the budget that says no."""
        hit = await self._count(asked, at)
        if hit is None or hit.scope is not Scope.PARENT:
            return hit
        # A job above may have been given more meanwhile.
        known, self._lasting = self._lasting, self._budgets_that_last()
        return hit if known == self._lasting else await self._count(asked, at)

    async def _count(self, asked: Used, at: datetime) -> Hit | None:
        (answer,) = await self._context.state.apply(
            [
                CountUsage(
                    job_id=self._job.id,
                    epoch=self._job.epoch,
                    at=at,
                    total=self._recorder.tally.totals,
                    last_seq=self._recorder.last_seq,
                    asked=asked,
                    budgets=(*self._budgets(at), *self._lasting),
                )
            ]
        )
        if not isinstance(answer, Refused):
            return None
        if answer.why is Why.OVER_BUDGET:
            return answer.hit
        if answer.why in (Why.FENCED, Why.STATUS):
            raise FencedError(answer.message)
        raise RefusedError(answer.message)

    def _budgets_that_last(self) -> tuple[Budget, ...]:
        context = self._context
        return (*fleet_budgets(context.budget), *tree_budgets(self._within, context))

    def _budgets(self, at: datetime) -> Iterator[Budget]:
        day = day_of(at)
        for daily in self._days:
            yield from daily.budgets(day)


def daily_limits(agent: Agent, schedule_name: str | None, fleet: Limits) -> Iterator[Daily]:
    """The limits of a day that a job of the agent falls under, made by that schedule or by none."""
    schedule = agent.schedules.get(schedule_name) if schedule_name is not None else None
    if schedule is not None and schedule.limits.per_day != NO_DAY_LIMITS:
        limits = schedule.limits.per_day
        yield Daily(
            scope=Scope.SCHEDULE,
            limits=limits,
            outcomes={**agent.limits.outcomes, **schedule.limits.outcomes},
            agent=agent.name,
            schedule=schedule.name,
        )
    if agent.limits.per_day != NO_DAY_LIMITS:
        own = agent.limits
        yield Daily(scope=Scope.AGENT, limits=own.per_day, outcomes=own.outcomes, agent=agent.name)
    if fleet.per_day != NO_DAY_LIMITS:
        yield Daily(scope=Scope.FLEET, limits=fleet.per_day, outcomes=fleet.outcomes)


def days_above(within: Sequence[ParentLimits], context: FleetContext) -> Iterator[Daily]:
    """The limits of a day of the agents and schedules that a child works for; it fails where their jobs would."""
    for above in within:
        job = context.reader.find_job(above.job)
        agent = context.agents.get(job.agent) if job is not None else None
        if job is None or agent is None:
            continue
        for daily in daily_limits(for_schedule(agent, job.schedule), job.schedule, NO_LIMITS):
            failing = {name: one for name, one in daily.outcomes.items() if one is OnLimit.FAIL}
            yield replace(daily, outcomes=failing)


def fleet_budgets(limits: Limits) -> Iterator[Budget]:
    """What all jobs together may use, ever."""
    for name in COUNTED:
        maximum = limits.maximum(name)
        if maximum is not None:
            outcome = limits.outcome(name)
            yield Budget(scope=Scope.FLEET, name=name, maximum=maximum, outcome=outcome)


def tree_budgets(within: Sequence[ParentLimits], context: Stores) -> Iterator[Budget]:
    """What the jobs above may use, this one included; re-read, because they may have been raised."""
    for above in within:
        root = above.job
        limits = {**above.limits, **raised(root, context)}
        for name in COUNTED:
            if limits.get(name.value) is not None:
                yield Budget(
                    scope=Scope.PARENT,
                    name=name,
                    maximum=limits[name.value],
                    root=root,
                    outcome=outcome_above(above, name),
                )


def outcome_above(above: ParentLimits, name: LimitName) -> OnLimit:
    """What happens to a job at a limit of one above it: it fails where that would; else both wait."""
    return OnLimit.FAIL if name.value in above.fail else OnLimit.SUSPEND


def raised(job_id: JobId, context: Stores) -> Mapping[str, int]:
    """The limits that were given to a job itself."""
    if job_id.startswith(RUN_PREFIX):
        run = context.reader.find_run(RunId(job_id))
        return {} if run is None else run.limits
    texts = context.reader.find_texts(job_id)
    return (texts.overrides.limits if texts is not None else None) or {}
