"""Keeping a job to its limits: asked before it starts, before each model call, and after every event.

Runtimes that ask before they call a model are refused before anything is spent. The others are stopped
at the first event that shows more than there may be, before the next tool, so that they go beyond by one
turn at most; their limits say by how much. Before a job is stopped it is looked whether somebody has
given it more meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from msgspec.structs import replace

from nightherd.engine.contexts import Stores
from nightherd.engine.jobs.recorder import Recorder
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.job import ExitReason, Job
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.jobs.outcome import Outcome, Tally
from nightherd.model.jobs.overrides import overridden
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.limits import (
    Hit,
    LimitName,
    Limits,
    OnLimit,
    Scope,
    Used,
    bounds,
    decide,
    limits_of_document,
    suspension_of,
)
from nightherd.model.schedules.jobs import for_schedule
from nightherd.model.usage import tokens_in

Stop = Suspension | Outcome


def job_limits(agent: Agent, options: JobOptions) -> Limits:
    """What one job of the agent may use: what it was given itself, else what the agent has."""
    own = agent.limits
    failing: dict[LimitName, OnLimit] = {}
    if agent.max_turns is not None and (own.turns is None or options.max_turns is not None):
        own = replace(own, turns=agent.max_turns)
        failing[LimitName.TURNS] = OnLimit.FAIL
    if agent.max_budget_microusd is not None and own.spend is None:
        own = replace(own, spend=agent.max_budget_microusd)
        failing[LimitName.SPEND] = OnLimit.FAIL
    if failing:
        own = replace(own, outcomes={**own.outcomes, **failing})
    if options.limits is None:
        return own
    mine = limits_of_document(options.limits, own.outcomes)
    return replace(mine.over(own), per_day=own.per_day)


def raises_limits(agent: Agent, options: JobOptions) -> bool:
    """Return whether a new job with these options may use more than the agent's own jobs."""
    own, given = job_limits(agent, NO_OPTIONS), job_limits(overridden(agent, options), options)
    pairs = [(own.maximum(name), given.maximum(name)) for name in LimitName]
    timeouts = (agent.job_timeout, overridden(agent, options).job_timeout)
    return any(most is not None and (new is None or new > most) for most, new in pairs) or bool(
        timeouts[0] and timeouts[1] and timeouts[1] > timeouts[0]
    )


def limits_for(job: Job, options: JobOptions, agent: Agent) -> Limits:
    """What a job of the agent may use that begins now."""
    return job_limits(overridden(for_schedule(agent, job.schedule), options), options)


def used_by(tally: Tally, running_ms: int) -> Used:
    """The totals of a job's record."""
    usage = tally.usage
    return Used(
        spend=usage.cost_microusd,
        turns=tally.turns,
        tokens=tokens_in(usage),
        duration=running_ms,
    )


def stop_of(hit: Hit) -> Stop:
    """What becomes of a job that meets a limit."""
    why = suspension_of(hit)
    if hit.outcome is not OnLimit.FAIL:
        return why
    is_turns = hit.name is LimitName.TURNS
    return Outcome(
        exit_reason=ExitReason.MAX_TURNS if is_turns else ExitReason.LIMIT,
        error=why.message,
        error_code=hit.code,
    )


class Guard:
    """Keeps one execution to the limits of its job."""

    def __init__(
        self, job: Job, agent: Agent, limits: Limits, recorder: Recorder, context: Stores
    ) -> None:
        self._agent = agent
        self._know(limits)
        self._given = limits
        """Of what the runtime was told how much is left."""
        self._clock = context.clock
        self._begun = context.clock.monotonic()
        self._earlier_ms = earlier_ms(job, context)
        self._asks = agent.runtime.asks_before_turns
        self._recorder = recorder
        self._job = job
        self._reader = context.reader
        self.has_children = job.epoch > 1 and bool(context.reader.jobs_of_parent(job.id))

    @property
    def limits(self) -> Limits:
        """What the job may use, as far as this execution knows."""
        return self._limits

    @property
    def running_ms(self) -> int:
        """How long the job has run, earlier executions included."""
        own = max(self._clock.monotonic() - self._begun, 0.0)
        return self._earlier_ms + int(own * 1_000)

    def waited(self, seconds: float) -> None:
        """Leave a pause that begins now out of the running time."""
        self._begun += seconds

    @property
    def used(self) -> Used:
        """What the job has used so far."""
        own = used_by(self._recorder.tally, self.running_ms)
        return own + self._reader.used_below(self._job.id) if self.has_children else own

    def before_start(self) -> Hit | None:
        """The limit that leaves nothing to begin with."""
        return self._unless_raised(lambda: decide(self.used, self._bounds, has_more=True))

    def after(self, event: Event, tally: Tally) -> Hit | None:
        """The limit that the record has met with `event`, when there is more to come."""
        if isinstance(event, ErrorEvent):
            return self._stopped_by_itself(event)
        return self._unless_raised(lambda: self._met_with(event, tally))

    def _met_with(self, event: Event, tally: Tally) -> Hit | None:
        match event:
            case ToolResultEvent():
                is_boundary = not tally.open_calls and not self._asks
                return decide(self.used, self._bounds, has_more=is_boundary)
            case AssistantEvent(end=True) if tally.open_calls:
                # What it used is known now, and its calls are still to be made.
                return decide(self.used, self._bounds, has_more=not self._asks)
            case ToolUseEvent() | AssistantEvent(partial=None | False, end=False):
                return decide(self.used, self._bounds, has_more=False)
            case _:
                return None  # what comes next may be the end, which is never taken from a job

    def _stopped_by_itself(self, event: ErrorEvent) -> Hit | None:
        """The limit at which the runtime has stopped where it was told to."""
        given, hit = self._given, None
        if event.code == ExitReason.LIMIT and given.spend is not None:
            used = self.used  # `spend_left`, to the last rounding
            at_least = replace(used, spend=max(used.spend, given.spend))
            hit = decide(at_least, bounds(given), has_more=True)
        elif event.code == ExitReason.MAX_TURNS and given.turns is not None:
            hit = decide(self.used, bounds(given), has_more=True)  # `turns_left`
        return None if hit is None else self._waiting_if_raised(hit)

    def before_turn(self, asked: Used) -> Hit | None:
        """The limit that a further turn may go beyond, when it uses so much at most."""
        return self._unless_raised(lambda: self._ahead(asked))

    def _ahead(self, asked: Used) -> Hit | None:
        used = self.used
        hit = decide(used, self._of_turns, has_more=True)
        if hit is None:
            hit = decide(used, self._of_amounts, has_more=True)
        if hit is not None or not self._of_amounts:
            return hit
        ahead = decide(used + asked, self._of_amounts, has_more=False)
        return None if ahead is None else replace(ahead, is_ahead=True)

    def spend_left(self) -> int | None:
        """Micro-dollars it may still spend."""
        self._given = self._limits
        limit = self._limits.spend
        return None if limit is None else max(0, limit - self.used.spend)

    def turns_left(self) -> int | None:
        """Turns it may still take."""
        self._given = self._limits
        limit = self._limits.turns
        return None if limit is None else max(0, limit - self.used.turns)

    def time_left(self) -> timedelta | None:
        """How long it may still run."""
        limit = self._limits.duration
        return (
            None
            if limit is None
            else max(timedelta(), limit - timedelta(milliseconds=self.running_ms))
        )

    def out_of_time(self) -> Hit:
        """The limit of time, met."""
        maximum = self._limits.maximum(LimitName.DURATION) or 0
        current = max(maximum, self.used.duration)
        hit = Hit(
            name=LimitName.DURATION,
            scope=Scope.JOB,
            current=current,
            maximum=maximum,
            outcome=self._limits.outcome(LimitName.DURATION),
        )
        return self._waiting_if_raised(hit)

    def _unless_raised(self, met: Callable[[], Hit | None]) -> Hit | None:
        """What is `met`, asked again when the job has been given more meanwhile."""
        hit = met()
        return met() if hit is not None and self._learn() else hit

    def _waiting_if_raised(self, hit: Hit) -> Hit:
        """A run that has ended at its limit fails no job that has been given more: it waits, and continues at once."""
        self._learn()
        is_raised = (self._limits.maximum(hit.name) or 0) > hit.maximum
        return replace(hit, outcome=OnLimit.SUSPEND) if is_raised else hit

    def _know(self, limits: Limits) -> None:
        self._limits = limits
        # Asked before and after every turn: not looked up again for each.
        self._bounds = bounds(limits)
        self._of_turns = bounds(replace(limits, spend=None, tokens=None))
        self._of_amounts = bounds(replace(limits, turns=None, duration=None))

    def _learn(self) -> bool:
        """Look what the job may use now; whether that is something else than it was."""
        texts = self._reader.find_texts(self._job.id)
        limits = self._limits if texts is None else job_limits(self._agent, texts.overrides)
        is_new = limits != self._limits
        self._know(limits)
        return is_new


def earlier_ms(job: Job, context: Stores) -> int:
    """How long workers have worked at the job in its earlier executions."""
    if job.epoch <= 1:
        return 0
    executions = context.reader.list_executions(job.id)
    return sum(
        execution.duration_ms or 0 for execution in executions if execution.epoch < job.epoch
    )
