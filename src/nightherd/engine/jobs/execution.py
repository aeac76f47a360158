"""Execution: one try at a job, from taking it to settled.

Take the job (its epoch fences this try), say so in the journal, let the runtime run, record every event
before it is shown, and settle: the journal's end first, then the row that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from nightherd.engine.children import is_unwanted
from nightherd.engine.contexts import Stores, WorkerContext
from nightherd.engine.jobs.abandoned import finish_ending
from nightherd.engine.jobs.answer_stream import open_stream
from nightherd.engine.jobs.begin import Begun, Counted, begin, counted_now, request_for
from nightherd.engine.jobs.operator_log import log_end, log_start, logged
from nightherd.engine.jobs.oversight import Stopper, is_cancel_requested
from nightherd.engine.jobs.recorder import OnEvent, Progress, Recorder
from nightherd.engine.jobs.running import Running, Stop
from nightherd.engine.jobs.settle import last_line, settling_change
from nightherd.engine.jobs.watch import Watch, make_watch
from nightherd.engine.limits.guard import ASKING
from nightherd.engine.limits.logins import stopped_by, with_login_limit
from nightherd.errors import (
    AgentBlockedError,
    FencedError,
    JobNotFoundError,
    NotYetError,
    RefusedError,
    StateError,
)
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import InjectedMcpServerDef
from nightherd.model.change import Answer, Applied, Change, Refused, Why
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.changes import LoseExecution, RecordRuntimeSession, StartExecution
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, JobTexts
from nightherd.model.jobs.lost import HANDED_OVER
from nightherd.model.jobs.outcome import CANCELLED, SILENT_END, Outcome, Tally
from nightherd.model.jobs.overrides import overridden
from nightherd.model.jobs.suspension import Suspension
from nightherd.model.replace import replace
from nightherd.model.schedules.jobs import for_schedule
from nightherd.model.sessions.session import Session
from nightherd.ports import Journal, RuntimeRequest


async def execute(
    job_id: JobId,
    agent: Agent,
    context: WorkerContext,
    *,
    on_event: OnEvent,
    stopper: Stopper | None = None,
    injected: Sequence[InjectedMcpServerDef] = (),
) -> Job:
    """Take the pending job `job_id`, run it and settle it; the job as it is then.

    Raises `NotYetError` when it has to wait, `RefusedError` when it cannot be taken, `FencedError` when
    another worker took it over, `AgentBlockedError` when no job of the agent may run.
    """
    _check_blocked(agent)
    start = StartExecution(
        job_id=job_id,
        worker=context.worker,
        at=context.clock.now(),
        repo=agent.repo,
        agent_limit=agent.max_concurrent,
        fleet_limit=context.fleet_limit,
        stopped_by=stopped_by(agent, context.environment),
    )
    (answer,) = await context.state.apply([start])
    job = job_of(answer)
    return await carry_on(
        job,
        agent,
        context,
        on_event=on_event,
        stopper=stopper,
        injected=injected,
        taken=answer,
    )


async def carry_on(
    job: Job,
    agent: Agent,
    context: WorkerContext,
    *,
    on_event: OnEvent,
    stopper: Stopper | None = None,
    injected: Sequence[InjectedMcpServerDef] = (),
    taken: Answer | None = None,
) -> Job:
    """Run a job that this worker has taken, and settle or suspend it; the job as it is then.

    `taken` is the answer that made it this worker's: what it tells is not looked up again.
    """
    _check_blocked(agent)
    log_start(job, context)
    session, texts = _told_by(taken)
    texts = texts or context.reader.find_texts(job.id)
    if texts is None:
        raise JobNotFoundError(f"job {job.id} has no prompt on record")
    agent = overridden(for_schedule(agent, job.schedule), texts.overrides)
    if session is None and job.session_id is not None:
        session = context.reader.find_session(job.session_id)
    recorder = Recorder(
        context.secrets,
        logged(job, context, on_event),
        is_ours=lambda: context.lease.holds(context.clock.monotonic()),
    )
    watch = make_watch(job, agent, texts, recorder, context)
    stopper = stopper or Stopper()
    stopper.progress = Progress(job, recorder, context.clock, watch.is_countable)
    stopper.state_file = watch.state_file
    execution = _Execution(
        job=job,
        agent=agent,
        texts=texts,
        session=session,
        context=context,
        recorder=recorder,
        watch=watch,
        stopper=stopper,
        injected=injected,
    )
    return await execution.carry_on()


def _check_blocked(agent: Agent) -> None:
    if agent.blocked_by:
        raise AgentBlockedError(agent.name, agent.blocked_by)


@dataclass(slots=True, kw_only=True)
class _Execution:
    """One try at a job that has been taken, from its first line to its settled row."""

    job: Job
    agent: Agent
    texts: JobTexts
    session: Session | None
    """As it was when the job was taken."""
    context: WorkerContext
    recorder: Recorder
    watch: Watch
    stopper: Stopper
    injected: Sequence[InjectedMcpServerDef]
    before: Tally = field(default_factory=Tally)
    """What earlier executions left on record."""
    was_asked: bool = False
    """Whether the runtime has been asked to run: from then on, its rows may have changed."""
    closing: Sequence[Change] = ()
    """What belongs into the transaction that settles."""

    async def carry_on(self) -> Job:
        """The job as it stands afterwards."""
        context = self.context
        failure: StateError | None = None
        try:
            with self.recorder.into(self._open_journal()):
                stop = await self._run()
                if stop is None:
                    return await self._hand_over(HANDED_OVER)
                stop = await self._end(stop)
                await self.recorder.sync(context.sync)
        except StateError as error:
            if error.can_pass:
                # A full disk, say: the job waits until there is room, and continues after its last line.
                await self._hand_over(error.message)
                raise
            # The record cannot be continued; what it holds so far is what counts.
            failure = error
            stop = Outcome(
                exit_reason=ExitReason.ERROR, error=error.message, error_code="journal_failed"
            )
        settled = await self._settle(stop, failure)
        log_end(settled, context)
        if failure is not None:
            raise failure
        await self.watch.settled(settled)
        return settled

    async def _run(self) -> Stop | None:
        """How the runtime ended, or why it waits; None when the job is given back."""
        job, context, recorder = self.job, self.context, self.recorder
        repeats = self.agent.runtime in ASKING
        begun = begin(recorder, job, self.texts, self.session, context, repeats=repeats)
        self.before = begun.before
        stream = open_stream(job, recorder, context)
        running = Running(
            job=job,
            recorder=recorder,
            context=context,
            stopper=self.stopper,
            watch=self.watch,
            make_request=partial(self._request, begun),
            note_session=partial(_note_runtime_session, job, context),
            stream=stream,
        )
        told = await finish_ending(job, self.agent, recorder, context)
        if told is None and is_unwanted(job, context.reader):
            told = CANCELLED
        with closing(stream):
            stop = told if told is not None else await running.to_the_end()
        if self.stopper.is_abandoned:
            raise FencedError(f"{job.id} is no longer this worker's")
        return None if self.stopper.is_handed_over and stop is SILENT_END else stop

    def _request(self, begun: Begun) -> RuntimeRequest:
        """What the runtime is to do, as the record stands now."""
        job, context = self.job, self.context
        counted = Counted(turns=job.turns, session=self.session)
        if self.was_asked:
            counted = counted_now(job, context)
        self.was_asked = True
        request = request_for(job, self.agent, self.texts, begun, counted, self.recorder, context)
        return replace(request, injected_servers=self.injected)

    async def _end(self, stop: Stop) -> Stop:
        """Hooks, then the last word: how it stands in the end."""
        stop = self._or_cancelled(stop)
        stop = await _after(self.job, self.agent, stop, self.recorder, self.context)
        stop = self._or_cancelled(stop)
        if isinstance(stop, Suspension):
            stop = with_login_limit(stop, self.agent, self.context)
        await self._record_end(stop)
        return stop

    async def _record_end(self, stop: Stop) -> None:
        self.closing = await self.watch.closing(stop)
        self.recorder.record(last_line(stop))

    def _or_cancelled(self, stop: Stop) -> Stop:
        """Return how the run ended, unless somebody has cancelled the job meanwhile."""
        return CANCELLED if is_cancel_requested(self.job, self.context) else stop

    async def _hand_over(self, reason: str) -> Job:
        """Give the job back: it waits, and the next worker resumes it."""
        job = await _hand_over(self.job, self.before, self.recorder, self.context, reason)
        if self.watch.state_file is not None:
            await self.watch.state_file.write_end()
        return job

    async def _settle(self, stop: Stop, failure: StateError | None) -> Job:
        """The job as its rows say it from now on."""
        answer = await self._apply(stop, has_checkpoint=failure is None)
        if isinstance(answer, Refused) and answer.why is Why.CANCELLED:
            # Somebody cancelled it after its last line: the record says so before the row does.
            if failure is None:
                with self.recorder.into(self._open_journal()):
                    await self._record_end(CANCELLED)
                    await self.recorder.sync(self.context.sync)
            answer = await self._apply(CANCELLED, has_checkpoint=failure is None)
        return job_of(answer)

    async def _apply(self, stop: Stop, *, has_checkpoint: bool) -> Answer:
        change = settling_change(
            self.job,
            stop,
            self.before,
            self.recorder,
            self.context,
            has_checkpoint=has_checkpoint,
        )
        *_, answer = await self.context.state.apply([*self.closing, change])
        return answer

    def _open_journal(self) -> Journal:
        job = self.job
        execution = generate_execution_id(job.id, job.epoch)
        return self.context.journals.open(job.id, epoch=job.epoch, execution=execution)


async def _after(
    job: Job, agent: Agent, stop: Stop, recorder: Recorder, context: WorkerContext
) -> Stop:
    """Run what is wanted once the job stands so; it may be that the job fails by it."""
    tally = recorder.tally
    standing = replace(
        job,
        status=JobStatus.SUSPENDED if isinstance(stop, Suspension) else stop.status,
        exit_reason=None if isinstance(stop, Suspension) else stop.exit_reason,
        suspend_reason=stop.reason if isinstance(stop, Suspension) else None,
        error=stop.message if isinstance(stop, Suspension) else stop.error,
        error_code=stop.code if isinstance(stop, Suspension) else stop.error_code,
        finished_at=context.clock.now(),
        turns=tally.turns,
        messages=tally.messages,
        input_tokens=tally.usage.input_tokens,
        output_tokens=tally.usage.output_tokens,
        cache_creation_input_tokens=tally.usage.cache_creation_input_tokens,
        cache_read_input_tokens=tally.usage.cache_read_input_tokens,
        cost_microusd=tally.usage.cost_microusd,
        runtime_session_id=tally.runtime_session_id or job.runtime_session_id,
    )
    other = await context.hooks.after(
        standing, agent, context, record=recorder.record, answer=tally.answer
    )
    return other if other is not None else stop


async def _note_runtime_session(
    job: Job, context: Stores, runtime_session_id: str, session_note: str | None
) -> None:
    (answer,) = await context.state.apply(
        [
            RecordRuntimeSession(
                job_id=job.id,
                epoch=job.epoch,
                runtime_session_id=runtime_session_id,
                at=context.clock.now(),
                session_note=session_note,
            )
        ]
    )
    job_of(answer)


async def _hand_over(
    job: Job,
    before: Tally,
    recorder: Recorder,
    context: Stores,
    reason: str,
) -> Job:
    tally = recorder.tally
    change = LoseExecution(
        job_id=job.id,
        epoch=job.epoch,
        at=context.clock.now(),
        reason=reason,
        max_restarts=0,
        last_seq=recorder.last_seq,
        total=tally.totals,
        own=tally.totals - before.totals,
        is_planned=True,
    )
    (answer,) = await context.state.apply([change])
    return job_of(answer)


def _told_by(taken: Answer | None) -> tuple[Session | None, JobTexts | None]:
    """The session of a job that was just taken, and its texts, as far as the answer has them."""
    if not isinstance(taken, Applied):
        return None, None
    return next((row for row in taken.rows if isinstance(row, Session)), None), taken.texts


def job_of(answer: Answer) -> Job:
    """The job an answer is about, or what its refusal means as an error."""
    match answer:
        case Applied(job=Job() as job):
            return job
        case Applied():
            raise JobNotFoundError("the change was not about a job")
        case Refused(why=Why.MISSING, message=message):
            raise JobNotFoundError(message)
        case Refused(why=Why.FENCED, message=message):
            raise FencedError(message)
        case Refused(why=Why.SESSION_BUSY | Why.FULL | Why.RATE_LIMITED, message=message):
            raise NotYetError(message)
        case Refused(message=message):
            raise RefusedError(message)
