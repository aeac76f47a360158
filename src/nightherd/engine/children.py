"""Child jobs: a job has another agent do a part of its work, and waits for it, over any number of restarts.

A child is a job like any other, made once for each call. It runs in its parent's place, so that it waits
for no room that its parent holds; it may use no more than every job above it has left, and is held to no
more than they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NoReturn

import anyio
from msgspec.structs import replace

from nightherd.engine.contexts import Stores, WorkerContext
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.jobs.recorder import Recorder, save_progress
from nightherd.engine.limits.budgets import outcome_above, raised
from nightherd.engine.limits.guard import Stop, stop_of
from nightherd.engine.limits.logins import limit_now
from nightherd.engine.operations.requests import Submit
from nightherd.engine.operations.submit import submit
from nightherd.errors import FencedError, NightherdError, NotYetError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.children import SpawnCall, SpawnResult, narrowed, spawn_key
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import CancelJob, ResumeJob
from nightherd.model.jobs.job import (
    CHILD_WAITS,
    ExitReason,
    Job,
    JobStatus,
    JobTexts,
    SuspendReason,
    TriggerType,
)
from nightherd.model.jobs.options import JobOptions, ParentLimits
from nightherd.model.journal.event import ToolResultEvent
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.limits import (
    Hit,
    LimitName,
    Limits,
    OnLimit,
    Scope,
    amount_of,
    limits_document,
)
from nightherd.model.limits.login import text_of
from nightherd.model.limits.spending import CountUsage
from nightherd.model.permissions.tool_rule import covers_spawn
from nightherd.model.workflows.run import RUN_PREFIX, RunId
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import get_job

LOOK_EVERY_S = 0.1
SHORT_WAIT = timedelta(minutes=1)
"""For how long a job stays with its worker while a child of it waits for a time."""
DEEPEST = 32
"""Levels of jobs below a job without a parent, whatever the limits say: an agent may start itself."""


class ChildWaitsError(Exception):
    """A child waits for a person: the run stops, and the call stays open until the child has ended."""


class ChildJobs:
    """The children of one execution."""

    def __init__(
        self,
        job: Job,
        agent: Agent,
        texts: JobTexts,
        limits: Limits,
        recorder: Recorder,
        context: WorkerContext,
    ) -> None:
        self.stop: Stop | None = None
        self.hit: Hit | None = None
        """The limit of children that was met, if it is why."""
        self._job = job
        self._agent = agent
        self._limits = limits
        self._recorder = recorder
        self._context = context
        self._above = texts.overrides.within

    async def spawn(self, call: SpawnCall) -> SpawnResult:
        """Have it done, and wait for it; a call that was made before is waited for, not made again."""
        key = spawn_key(self._job.id, call.call_id)
        known = next(
            (
                one
                for one in self._context.reader.jobs_of_parent(self._job.id)
                if one.dedupe_key == key
            ),
            None,
        )
        if known is not None:
            return await self._result(known.id)
        agent = self._context.agents.get(call.agent)
        if agent is None:
            return SpawnResult(success=False, error=f"the fleet has no agent {call.agent!r}")
        if not covers_spawn(self._agent.required_caps, call.agent):
            return SpawnResult(success=False, error=f"it may not spawn jobs of {call.agent!r}")
        if len(self._above) >= DEEPEST:
            error = f"there are {DEEPEST} levels of jobs above it already"
            return SpawnResult(success=False, error=error)
        hit = self._beyond()
        if hit is not None:
            self.hit, self.stop = hit, stop_of(hit)
            if isinstance(self.stop, Suspension):
                # The call stays open: it is made once there may be more.
                raise ChildWaitsError(self.stop.message)
            return SpawnResult(success=False, error=f"{hit.code}: {hit.current} of {hit.maximum}")
        await self._count()
        try:
            made = await submit(self._request(agent, call, key), self._context)
        except NightherdError as error:
            return SpawnResult(success=False, error=error.message)
        return await self._result(made.job.id)

    async def rejoin(self) -> Stop | None:
        """Wait for the children of calls that were cut off, and answer them; why the job waits on, if it does.

        A child that waited for what this job has left continues: its budget was raised.
        """
        try:
            await self._rejoin()
        except ChildWaitsError:
            return self.stop
        return None

    async def _rejoin(self) -> None:
        for job_id, call in children_of_calls(
            self._job, self._recorder.tally.open_calls, self._context
        ):
            child = self._context.reader.find_job(job_id)
            if child is not None and child.suspend_reason is SuspendReason.BUDGET:
                again = ResumeJob(job_id=job_id, at=self._context.clock.now())
                await self._context.state.apply([again])
            found = await self._result(job_id)
            self._recorder.record(
                ToolResultEvent(
                    tool_use_id=call,
                    result=found.answer,
                    success=found.success,
                    error=found.error,
                    turn=self._recorder.tally.turns + 1,
                    index=0,
                    end=True,
                )
            )

    async def leave(self, job: Job) -> None:
        """A job that is over needs its children no more: they are cancelled, and theirs."""
        if job.is_terminal and job.status is not JobStatus.COMPLETED:
            await cancel_below(job.id, self._context)

    def _request(self, agent: Agent, call: SpawnCall, key: str) -> Submit:
        options = JobOptions(
            within=(*self._above, self._own()),
            required_caps=narrowed(self._agent.required_caps, agent.required_caps),
        )
        return Submit(
            agent=agent.name,
            prompt=call.prompt,
            trigger_type=TriggerType.SPAWNED,
            trigger_id=self._job.id,
            parent_job_id=self._job.id,
            dedupe_key=key,
            has_own_key=True,
            options=options,
            priority=self._job.priority,
        )

    def _beyond(self) -> Hit | None:
        """The limit of children, its own or of a job above, that one more would go beyond."""
        level = 0
        for above in reversed([*self._above, self._own()]):
            root = above.job
            level += not root.startswith(RUN_PREFIX)  # the phases of a run are no level of children
            scope = Scope.JOB if root == self._job.id else Scope.PARENT
            limits = {**above.limits, **raised(root, self._context)}
            depth, spawns = limits.get("depth"), limits.get("spawns")
            if depth is not None and level > depth:
                return self._hit(LimitName.DEPTH, scope, level, depth, above)
            made = self._made_below(root) + 1
            if spawns is not None and made > spawns:
                return self._hit(LimitName.SPAWNS, scope, made, spawns, above)
        return None

    def _made_below(self, root: JobId) -> int:
        """How many child jobs a job, or all jobs of a workflow run, have below them."""
        reader = self._context.reader
        if root.startswith(RUN_PREFIX):
            return reader.used_in_run(RunId(root)).spawns
        return reader.used_below(root).spawns

    def _own(self) -> ParentLimits:
        """What this job may use, as those below it store it, and at which limits they fail."""
        limits = limits_document(self._limits)
        failing = (name for name in limits if self._limits.outcome(LimitName(name)) is OnLimit.FAIL)
        return ParentLimits(job=self._job.id, limits=limits, fail=tuple(failing))

    def _hit(
        self, name: LimitName, scope: Scope, current: int, maximum: int, above: ParentLimits
    ) -> Hit:
        own = self._limits.outcome(name)
        is_own = scope is Scope.JOB
        return Hit(
            name=name,
            scope=scope,
            current=current,
            maximum=maximum,
            outcome=own if is_own else outcome_above(above, name),
            owner=None if is_own else above.job,
        )

    async def _count(self) -> None:
        """What the job has used itself is on its row before a child looks at what is left."""
        change = CountUsage(
            job_id=self._job.id,
            epoch=self._job.epoch,
            at=self._context.clock.now(),
            total=self._recorder.tally.totals,
            last_seq=self._recorder.last_seq,
        )
        await self._context.state.apply([change])

    async def _result(self, job_id: JobId) -> SpawnResult:
        job = await self._joined(job_id)
        texts = self._context.reader.find_texts(job_id)
        answer = (texts.summary if texts is not None else None) or job.summary
        if job.status is JobStatus.COMPLETED:
            return SpawnResult(success=True, answer=answer, job_id=job_id)
        why = f": {job.error}" if job.error else ""
        error = f"job {job_id} of {job.agent} is {job.status.value}{why}"
        return SpawnResult(success=False, answer=answer, error=error, job_id=job_id)

    async def _joined(self, job_id: JobId) -> Job:
        """The child once it is over; it is run here unless another worker has it."""
        while True:
            job = get_job(self._context.reader, job_id)
            if job.is_terminal:
                return job
            if job.status is JobStatus.SUSPENDED:
                await self._wait_with(job)
            if job.status is JobStatus.PENDING:
                await self._run(job)
            await anyio.sleep(LOOK_EVERY_S)

    async def _wait_with(self, child: Job) -> None:
        """Wait for a child that waits briefly; a child that waits for a person, or long, suspends this job too."""
        at, until = self._context.clock.now(), child.not_before
        if until is not None and until <= at:
            due = ResumeJob(job_id=child.id, at=at, only_due=True)
            await self._context.state.apply([due])
        if until is not None and until <= at + SHORT_WAIT:
            return
        self.hit = self._own_limit(child)
        if self.hit is not None:
            self.stop = stop_of(self.hit)
            raise ChildWaitsError(child.error)
        reason = child.suspend_reason or SuspendReason.BUDGET
        self._wait_for(child, child.error, reason, until)

    def _wait_for(
        self, child: Job, why: str | None, reason: SuspendReason, until: datetime | None
    ) -> NoReturn:
        """Make this job wait because its child does."""
        message = f"job {child.id} of {child.agent}, which does a part of it, waits: {why}"
        self.stop = Suspension(reason=reason, code=CHILD_WAITS, message=message, until=until)
        raise ChildWaitsError(message)

    def _own_limit(self, child: Job) -> Hit | None:
        """The limit of this job that `child`, or a job below it, has met and waits for."""
        for job_id, met in met_below(child, self._context.reader):
            limit = next((name for name in LimitName if name.code == met.get("code")), None)
            if met.get("owner") == self._job.id and limit is not None:
                return Hit(
                    name=limit,
                    scope=Scope.JOB,
                    current=amount_of(limit, float(met["current_value"])),
                    maximum=amount_of(limit, float(met["current_max"])),
                    outcome=self._limits.outcome(limit),
                    is_ahead=bool(met.get("is_ahead")),
                    below=job_id,
                )
        return None

    async def _run(self, job: Job) -> None:
        agent, run = self._context.agents.get(job.agent), self._context.run_job
        if agent is None or run is None or not self._context.can_run(agent.runtime.name):
            return
        limit = limit_now(agent, self._context)
        if limit is not None and limit.until > self._context.clock.now() + SHORT_WAIT:
            self._wait_for(job, text_of(limit), SuspendReason.RATE_LIMIT, limit.until)
        if agent.blocked_by:
            why = f"agent {job.agent!r} {agent.blocked_text}"
            self._wait_for(job, why, SuspendReason.ERROR, None)
        # In its parent's place: it takes no room that others could have.
        free = replace(agent, max_concurrent=1_000_000)
        context = replace(self._context, fleet_limit=None)
        stopper = Stopper()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_hand_over_when_cancelled, stopper)
            tasks.start_soon(_stop_when_wished, job.id, stopper, context)
            with anyio.CancelScope(shield=True):
                try:
                    await run(job.id, free, context, on_event=lambda event: None, stopper=stopper)
                except (NotYetError, RefusedError, FencedError):
                    pass  # its session is busy, or another worker has it
            tasks.cancel_scope.cancel()


async def _hand_over_when_cancelled(stopper: Stopper) -> None:
    """A parent that stops gives its child back; whether the child ends too is decided when the parent has."""
    try:
        await anyio.sleep_forever()
    finally:
        stopper.hand_over()


async def _stop_when_wished(job_id: JobId, stopper: Stopper, context: Stores) -> None:
    """Stop the child when it alone is cancelled; record what it has used meanwhile."""
    while True:
        await anyio.sleep(5 * LOOK_EVERY_S)
        await save_progress([stopper], context)
        job = context.reader.find_job(job_id)
        if job is not None and job.cancel_requested_at is not None:
            stopper.stop(ExitReason.CANCELLED)
            return


def children_of_calls(
    job: Job, calls: frozenset[str], context: Stores
) -> Iterator[tuple[JobId, str]]:
    """The children that these calls of the job have made, each with its call."""
    if not calls:
        return
    keys = {spawn_key(job.id, call): call for call in sorted(calls)}
    for child in context.reader.jobs_of_parent(job.id):
        if child.dedupe_key in keys:
            yield child.id, keys[child.dedupe_key]


def met_below(job: Job, reader: StateReader) -> Iterator[tuple[JobId, Mapping[str, Any]]]:
    """What a job waits for that waits, or those below it that it waits for: each as its last checkpoint has it."""
    if job.status is not JobStatus.SUSPENDED:
        return
    if job.error_code == CHILD_WAITS:
        for child in reader.jobs_of_parent(job.id):
            yield from met_below(child, reader)
        return
    known = reader.list_checkpoints(job.id)
    met = known[-1].header.get("suspension") if known else None
    if isinstance(met, Mapping):
        yield job.id, met


def is_unwanted(job: Job, reader: StateReader) -> bool:
    """Whether a job above is to end, or has without success: this one is no longer needed."""
    above = job.parent_job_id
    while above is not None:
        found = reader.find_job(above)
        if found is None or found.status is JobStatus.COMPLETED:
            return False
        if found.is_terminal or found.cancel_requested_at is not None:
            return True
        above = found.parent_job_id
    return False


async def cancel_below(job_id: JobId, stores: Stores) -> None:
    """Cancel every job below that is not over: at once where it waits; where it runs, its owner sees to it."""
    for child in stores.reader.jobs_of_parent(job_id):
        if not child.is_terminal:
            await stores.state.apply([CancelJob(job_id=child.id, at=stores.clock.now())])
        await cancel_below(child.id, stores)
