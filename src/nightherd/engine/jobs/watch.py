"""Watch: observes a run: what it uses, and where a bookmark is due.

An execution asks its watch at the few places there are and obeys what it says; how limits are kept and
checkpoints are made is no matter of the execution's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from nightherd.engine.checkpoints.checkpoints import Bookmarks, end_point, point_of
from nightherd.engine.checkpoints.state_files import StateFile, write_children, write_stopped
from nightherd.engine.children import ChildJobs
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.inbox.reviews import Reviews
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.limits.answers import answer_changes, notify_asker, obey_earlier
from nightherd.engine.limits.budgets import SharedBudget
from nightherd.engine.limits.guard import Guard, Stop, earlier_ms, job_limits, stop_of
from nightherd.engine.limits.logins import price_unknown
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Change
from nightherd.model.checkpoints.checkpoint import TriggerPoint
from nightherd.model.children import SpawnCall, SpawnResult
from nightherd.model.hooks import asked_about
from nightherd.model.inbox.review import ProposedCall, Verdict
from nightherd.model.jobs.job import Job, JobStatus, JobTexts
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.limits import Hit, LimitName, Shortfall, Used, suspension_of
from nightherd.model.limits.spending import next_day
from nightherd.model.usage import NOTHING_USED

ON_THE_WAY = frozenset({TriggerPoint.PRE_TURN, TriggerPoint.POST_LLM, TriggerPoint.POST_TOOLS})


class Watch(Protocol):
    """Looks at one execution. What it returns stops the run: the job waits, or fails where a limit says so."""

    @property
    def stopped(self) -> Stop | None:
        """What it last said, also where only the runtime heard it (`may_spend`)."""

    @property
    def state_file(self) -> StateFile | None:
        """The file that follows the job's checkpoints; None when there are none on the way."""

    async def before_start(self) -> Stop | None:
        """Asked once, when the journal is open and before the runtime runs."""

    def spend_left(self) -> int | None:
        """Micro-dollars the run may spend (`RuntimeRequest.spend_left`); None for no end."""

    def turns_left(self) -> int | None:
        """Turns the run may take (`RuntimeRequest.turns_left`); None for no end."""

    def time_left(self) -> float | None:
        """Seconds after which the run is to be stopped, asked once before it starts; None for no end."""

    def out_of_time(self) -> Stop:
        """What the job comes to when that time has passed."""

    def waited(self, seconds: float) -> None:
        """Start a pause between two tries: it does not count as running time."""

    async def at(self, point: TriggerPoint) -> None:
        """Take where the runtime is (`RuntimeRequest.at`)."""

    async def after(self, event: Event, tally: Tally) -> Stop | None:
        """Asked after every recorded event; `tally` is what the whole record comes to with it."""

    async def may_spend(self, microusd: int | None, tokens: int) -> Shortfall | None:
        """Asked by the runtime before it asks a model, with the worst case (`RuntimeRequest.may_spend`)."""

    def is_countable(self) -> bool:
        """Whether usage may be counted on the way: not while the watch has set something aside for a turn."""

    async def spawn(self, call: SpawnCall) -> SpawnResult:
        """Asked by the runtime to have another agent do a part of the work (`RuntimeRequest.spawn`)."""

    async def review(self, call: ProposedCall) -> Verdict:
        """Asked by the runtime about a call that a person has to allow (`RuntimeRequest.review`)."""

    def waiting_calls(self) -> frozenset[str]:
        """Return the calls that a person is asked about and that have not begun."""

    async def closing(self, end: Stop) -> Sequence[Change]:
        """Asked once, after the run and before the journal's last line.

        What it returns belongs before the change that suspends or settles, in the same `apply`.
        """

    async def settled(self, job: Job) -> None:
        """Take the job once its row is written."""


class QuietWatch:
    """A watch without limits and without checkpoints on the way: only an end without success has one."""

    stopped: Stop | None = None
    state_file: StateFile | None = None

    def __init__(
        self,
        job: Job,
        children: ChildJobs,
        bookmarks: Bookmarks,
        recorder: Recorder,
        context: WorkerContext,
    ) -> None:
        self._job = job
        self._children = children
        self._recorder = recorder
        self._bookmarks = bookmarks
        self._context = context
        self._reviews = Reviews(job, recorder, context)
        self._clock = context.clock
        self._begun = context.clock.monotonic()

    async def before_start(self) -> Stop | None:
        return await self._children.rejoin() if self._job.epoch > 1 else None

    async def spawn(self, call: SpawnCall) -> SpawnResult:
        try:
            return await self._children.spawn(call)
        finally:
            self.stopped = self.stopped or self._children.stop

    async def review(self, call: ProposedCall) -> Verdict:
        try:
            return await self._reviews.review(call)
        finally:
            self.stopped = self.stopped or self._reviews.stop

    def waiting_calls(self) -> frozenset[str]:
        return self._reviews.waiting_calls()

    def spend_left(self) -> int | None:
        return None

    def turns_left(self) -> int | None:
        return None

    def time_left(self) -> float | None:
        return None

    def out_of_time(self) -> Stop:
        raise AssertionError("there is no end to what is not limited")

    def waited(self, seconds: float) -> None:
        self._begun += seconds

    def is_countable(self) -> bool:
        return True

    async def at(self, point: TriggerPoint) -> None:
        return None

    async def after(self, event: Event, tally: Tally) -> Stop | None:
        return None if self._reviews.is_waiting else self.stopped

    async def may_spend(self, microusd: int | None, tokens: int) -> Shortfall | None:
        return None

    async def closing(self, end: Stop) -> Sequence[Change]:
        point = end_point(end)
        if point is not None:
            own_ms = int((self._clock.monotonic() - self._begun) * 1_000)
            running_ms = earlier_ms(self._job, self._context) + own_ms
            await self._bookmarks.close(point, end, running_ms)
        answers = await answer_changes(self._job, end, self._recorder.tally.answer, self._context)
        return [*self._reviews.closing(), *answers]

    async def settled(self, job: Job) -> None:
        is_completed = job.status is JobStatus.COMPLETED
        if not is_completed:
            await self._children.leave(job)
            await _write_ended_children(job, self._context)
        if not is_completed or self._was_suspended():
            await self._bookmarks.state_file.write_end()
        await _notify_asker(job, self._context)

    def _was_suspended(self) -> bool:
        """Whether a file shows the job where an earlier execution stopped."""
        has_earlier = self._job.epoch > 1
        return has_earlier and bool(self._context.reader.list_checkpoints(self._job.id))


class CloseWatch:
    """Keeps the job to its limits and puts bookmarks on the way."""

    def __init__(
        self,
        job: Job,
        agent: Agent,
        children: ChildJobs,
        guard: Guard,
        budget: SharedBudget,
        bookmarks: Bookmarks,
        recorder: Recorder,
        context: WorkerContext,
    ) -> None:
        self.stopped: Stop | None = None
        self._refused: Stop | None = None
        """The answer when the runtime last asked whether a turn may begin."""
        self._hit: Hit | None = None
        self._job = job
        self._recorder = recorder
        self._context = context
        self._reviews = Reviews(job, recorder, context)
        self._budget = budget
        self._is_shared = budget.is_shared
        self._clock = context.clock
        self._counted_at = context.clock.now()
        self._asked_after = NOTHING_USED
        """What was used when the last turn was asked for."""
        self._agent = agent
        self._children = children
        self._guard = guard
        self._bookmarks = bookmarks
        self.state_file = bookmarks.state_file
        self._asks = agent.runtime.asks_before_turns

    async def before_start(self) -> Stop | None:
        hit = self._guard.before_start()
        if hit is None and self._job.epoch > 1:
            waiting = await self._children.rejoin()
            if waiting is not None:
                return waiting
            hit = self._guard.before_start()
        return self._stop(hit if hit is not None else await self._count(Used()))

    def spend_left(self) -> int | None:
        return self._guard.spend_left()

    def turns_left(self) -> int | None:
        return self._guard.turns_left()

    def time_left(self) -> float | None:
        left = self._guard.time_left()
        return None if left is None else left.total_seconds()

    def out_of_time(self) -> Stop:
        stop = self._stop(self._guard.out_of_time())
        assert stop is not None  # noqa: S101 (a limit that was met is one)
        return stop

    def waited(self, seconds: float) -> None:
        self._guard.waited(seconds)

    def is_countable(self) -> bool:
        # Counting gives back what was set aside, which is right once the answer is on record.
        return not self._is_shared or self._recorder.tally.usage != self._asked_after

    async def at(self, point: TriggerPoint) -> None:
        if point in ON_THE_WAY:  # the others are put when the run has ended, by `closing`
            await self._bookmarks.at(point, self._guard.running_ms)

    async def after(self, event: Event, tally: Tally) -> Stop | None:
        if self._reviews.is_waiting:  # the runtime ends the run itself, when nothing is lost by it
            return None
        if self.stopped is not None:
            return self.stopped
        hit = self._guard.after(event, tally)
        if not self._asks:
            point = point_of(event, tally)
            if point is not None:
                await self._bookmarks.at(point, self._guard.running_ms)
            if hit is None and _has_more_to_spend(event, tally):
                hit = await self._count(Used())
        return self._stop(hit)

    async def spawn(self, call: SpawnCall) -> SpawnResult:
        self._guard.has_children = True
        try:
            return await self._children.spawn(call)
        finally:
            self.stopped = self.stopped or self._children.stop

    async def review(self, call: ProposedCall) -> Verdict:
        try:
            return await self._reviews.review(call)
        finally:
            self.stopped = self.stopped or self._reviews.stop

    def waiting_calls(self) -> frozenset[str]:
        return self._reviews.waiting_calls()

    async def may_spend(self, microusd: int | None, tokens: int) -> Shortfall | None:
        if self._refused is not None and self.stopped is self._refused:
            self.stopped = self._hit = None  # a turn that asks for less than the last may begin
        shortfall = await self._shortfall(microusd, tokens)
        self._refused = None if shortfall is None else self.stopped
        return shortfall

    async def _shortfall(self, microusd: int | None, tokens: int) -> Shortfall | None:
        if microusd is None and self._limits_spending():
            self.stopped = unpriced = price_unknown(self._agent)
            return Shortfall(stop=unpriced, name=LimitName.SPEND)
        asked = Used(spend=microusd or 0, tokens=tokens)
        hit = self._guard.before_turn(asked)
        if hit is None:
            hit = await self._count(asked)
        if hit is None:
            return None
        stopped = self._stop(hit)
        left = hit.maximum - hit.current + asked.amount(hit.name) if hit.is_ahead else 0
        stop = stopped if isinstance(stopped, Suspension) else suspension_of(hit)
        return Shortfall(stop=stop, name=hit.name, left=max(0, left))

    def _limits_spending(self) -> bool:
        """Whether any limit of dollars applies: the job's own, a parent's, the fleet's, or one of a day."""
        return self._guard.limits.spend is not None or self._budget.limits_spending

    async def closing(self, end: Stop) -> Sequence[Change]:
        point = end_point(end)
        if point is not None:
            hit = self._hit or self._children.hit
            outcome = hit.outcome if hit is not None else None
            self._bookmarks.know(self._guard.limits)
            await self._bookmarks.close(point, end, self._guard.running_ms, outcome=outcome)
        answers = await answer_changes(self._job, end, self._recorder.tally.answer, self._context)
        return [*self._reviews.closing(), *answers]

    async def settled(self, job: Job) -> None:
        await self._children.leave(job)
        await self.state_file.write_end()
        await _write_ended_children(job, self._context)
        await obey_earlier(job, self._context)
        await _notify_asker(job, self._context)

    async def _count(self, asked: Used) -> Hit | None:
        if not self._is_shared:
            return None
        self._counted_at = self._clock.now()
        self._asked_after = self._recorder.tally.usage
        return await self._budget.count(asked, self._counted_at)

    def _stop(self, hit: Hit | None) -> Stop | None:
        if hit is None:
            return None
        self._hit, self.stopped = hit, stop_of(hit)
        if hit.is_day and isinstance(self.stopped, Suspension):
            # As of the question: the day may have ended while it was answered.
            self.stopped = replace(self.stopped, until=next_day(self._counted_at))
        return self.stopped


async def _notify_asker(job: Job, context: WorkerContext) -> None:
    """The job that `job` was asked about may have been let fail."""
    waiting_id = asked_about(job)
    if waiting_id is not None:
        await notify_asker(job, context)
        await write_stopped(waiting_id, context, context.threads)


async def _write_ended_children(job: Job, context: WorkerContext) -> None:
    """Write the files of the jobs that ended because `job` did."""
    if job.is_terminal and job.status is not JobStatus.COMPLETED:
        await write_children(job.id, context, context.threads)


def _has_more_to_spend(event: Event, tally: Tally) -> bool:
    """Whether what was used is known, and more will be: before the tools of an answer run, and after."""
    match event:
        case AssistantEvent(end=True):
            return bool(tally.open_calls)  # else it may be the end, which is never taken from a job
        case AssistantEvent(usage=usage):
            return usage is not None
        case ToolResultEvent():
            return not tally.open_calls
        case _:
            return False


def make_watch(
    job: Job, agent: Agent, texts: JobTexts, recorder: Recorder, context: WorkerContext
) -> Watch:
    """The watch of one execution of `job`, which this worker has taken.

    Bookmarks on the way are put for runtimes that record every step, for agents with limits, and wherever the project has
    its own `state_persistence.yaml`; every other run costs nothing to watch.
    """
    limits = job_limits(agent, texts.overrides)
    bookmarks = Bookmarks(job, agent, limits, recorder, context)
    children = ChildJobs(job, agent, texts, limits, recorder, context)
    budget = SharedBudget(job, agent, texts, recorder, context)
    is_free = limits.is_empty and not budget.is_shared
    has_steps = agent.runtime.records_every_step
    if is_free and not has_steps and not context.persistence.is_project:
        return QuietWatch(job, children, bookmarks, recorder, context)
    guard = Guard(job, agent, limits, recorder, context)
    return CloseWatch(job, agent, children, guard, budget, bookmarks, recorder, context)
