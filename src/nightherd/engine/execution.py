"""Execution: one try at a job, from taking it to settled.

Take the job (its epoch fences this try), say so in the journal, let the runtime run, record every event
before it is shown, and settle: the journal's end first, then the row that names it.
"""

from __future__ import annotations

import traceback
from contextlib import aclosing
from dataclasses import replace

import anyio
from anyio import to_thread

from nightherd.engine.conclude import conclude, go_on_ending
from nightherd.engine.recorder import OnEvent, Recorder
from nightherd.engine.submit import values_of
from nightherd.engine.workshop import Workshop
from nightherd.errors import (
    FencedError,
    JobNotFoundError,
    NotYetError,
    RefusedError,
    StateError,
)
from nightherd.model.agent import Agent
from nightherd.model.change import (
    Answer,
    Applied,
    RecordRuntimeSession,
    Refused,
    SettleExecution,
    StartExecution,
    Why,
)
from nightherd.model.duration import format_duration
from nightherd.model.event import ErrorEvent, SystemEvent, ToolResultEvent, describe, is_terminal
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.job import ExitReason, Job, JobTexts
from nightherd.model.outcome import SILENT_END, Outcome, Tally
from nightherd.model.system import End, ExecutionStarted, Header, Recovered, SystemSubtype
from nightherd.ports import RuntimeRequest

INTERRUPTED_CALL = "interrupted: the worker was lost while this ran, its outcome is unknown"


class Stopper:
    """Lets somebody else stop an execution: the runtime is cancelled, the job ends with the reason given."""

    def __init__(self) -> None:
        self.reason: ExitReason | None = None
        self.is_abandoned = False
        self.scope = anyio.CancelScope()

    def stop(self, reason: ExitReason) -> None:
        """Stop now; the first reason counts."""
        if self.reason is None:
            self.reason = reason
            self.scope.cancel()

    def abandon(self) -> None:
        """Stop now and settle nothing: the job is another worker's, or will be."""
        self.is_abandoned = True
        self.scope.cancel()


async def execute(
    job_id: JobId,
    agent: Agent,
    workshop: Workshop,
    *,
    on_event: OnEvent,
    stopper: Stopper | None = None,
) -> Job:
    """Take the pending job `job_id`, run it and settle it; the job as it is then.

    Raises `NotYetError` when it has to wait, `RefusedError` when it cannot be taken, `FencedError` when
    another worker took it over.
    """
    start = StartExecution(
        job_id=job_id,
        worker=workshop.worker,
        at=workshop.clock.now(),
        repo=agent.repo,
        agent_limit=agent.max_concurrent,
        fleet_limit=workshop.fleet_limit,
    )
    (answer,) = await workshop.state.apply([start])
    job = job_of(answer)
    return await carry_on(job, agent, workshop, on_event=on_event, stopper=stopper)


async def carry_on(
    job: Job,
    agent: Agent,
    workshop: Workshop,
    *,
    on_event: OnEvent,
    stopper: Stopper | None = None,
) -> Job:
    """Run a job that this worker has taken, and settle it; the job as it is then."""
    stopper = stopper or Stopper()
    texts = workshop.reader.find_texts(job.id)
    if texts is None:
        raise JobNotFoundError(f"job {job.id} has no prompt on record")
    recorder = Recorder(
        workshop.secrets,
        on_event,
        is_ours=lambda: workshop.lease.holds(workshop.clock.monotonic()),
    )
    record = recorder.tally
    failure: StateError | None = None
    try:
        execution = generate_execution_id(job.id, job.epoch)
        journal = workshop.journals.open(job.id, epoch=job.epoch, execution=execution)
        with recorder.into(journal):
            record = _open(recorder, job, texts, workshop)
            request = _request(job, agent, texts, recorder.tally, workshop)
            outcome = await go_on_ending(job, agent, recorder, workshop)
            if outcome is None:
                outcome = await _run(recorder, request, job, workshop, stopper)
            if stopper.is_abandoned:
                raise FencedError(f"{job.id} is no longer this worker's")
            outcome = await conclude(job, agent, outcome, recorder, workshop)
            recorder.record(_end(outcome))
            # In a thread: the disk takes its time, and serves many jobs that end together at once.
            await to_thread.run_sync(journal.sync)
    except StateError as error:
        # The record cannot be continued (a full disk, say); what it holds so far is what counts.
        failure = error
        outcome = Outcome(
            exit_reason=ExitReason.ERROR, error=error.message, error_code="journal_failed"
        )
    settled = await _settle(job, record, recorder, outcome, workshop)
    if failure is not None:
        raise failure
    return settled


def _end(outcome: Outcome) -> SystemEvent:
    return describe(End(status=outcome.status.value, exit_reason=outcome.exit_reason.value))


def _open(recorder: Recorder, job: Job, texts: JobTexts, workshop: Workshop) -> Tally:
    """The lines before the runtime's own: the job itself once, this execution, the prompt once.

    The tally of what earlier executions left on record; how they ended does not matter any more. It is
    read after this execution's first line, which shuts out every earlier writer.
    """
    before = recorder.last_seq
    if before == 0:
        recorder.record(describe(_header(job, texts, workshop.version)))
    recorder.record(describe(ExecutionStarted(worker=workshop.worker, continues_after=before)))
    record = Tally()
    if before > 0:
        for event in workshop.journals.read(job.id):
            record = record.add(event)
    record = recorder.tally = replace(record, outcome=None)
    if before > 0:
        _tell_interruption(recorder, job)
    if record.messages == 0:
        recorder.record(
            SystemEvent(subtype=SystemSubtype.USER_INPUT, content=texts.prompt, end=True)
        )
    return record


def _tell_interruption(recorder: Recorder, job: Job) -> None:
    """What the lost execution left open is closed: a call in flight is never made again (INV-ONCE)."""
    lost = generate_execution_id(job.id, job.epoch - 1)
    recorder.record(describe(Recovered(lost_execution=lost, reason="its worker is gone")))
    turn = recorder.tally.turns + 1
    for call in sorted(recorder.tally.open_calls):
        recorder.record(
            ToolResultEvent(
                tool_use_id=call or None,
                success=False,
                error=INTERRUPTED_CALL,
                turn=turn,
                index=0,
                end=True,
            )
        )


async def _run(
    recorder: Recorder, request: RuntimeRequest, job: Job, workshop: Workshop, stopper: Stopper
) -> Outcome:
    """Let the runtime run to its end, its time limit, or until it is stopped."""
    limit = request.agent.job_timeout
    runtime = workshop.runtimes(request.agent.runtime)
    if limit is not None:
        stopper.scope.deadline = anyio.current_time() + limit.total_seconds()
    try:
        with stopper.scope:
            async with aclosing(runtime.execute(request)) as events:
                async for event in events:
                    known = recorder.tally.runtime_session_id
                    recorder.record(event)
                    found = recorder.tally.runtime_session_id
                    if found is not None and found != known:
                        await _note_runtime_session(job, found, workshop)
                    if is_terminal(event):
                        break
    except (FencedError, StateError):
        raise
    except Exception as error:  # noqa: BLE001 (an edge: whatever a runtime raises ends its job, never the worker)
        if stopper.is_abandoned:
            return SILENT_END  # nothing more is said about a job that is not ours
        recorder.record(
            ErrorEvent(
                message=f"{type(error).__name__}: {error}",
                code="runtime_error",
                stack=traceback.format_exc(),
            )
        )
    is_stopped = stopper.reason is not None or stopper.is_abandoned
    if stopper.scope.cancelled_caught and not is_stopped and limit is not None:
        recorder.record(
            ErrorEvent(
                message=f"the job ran longer than its job_timeout of {format_duration(limit)}",
                code="timeout",
            )
        )
    elif stopper.scope.cancelled_caught and stopper.reason is not None:
        return Outcome(exit_reason=stopper.reason)
    return recorder.tally.outcome or SILENT_END


async def _note_runtime_session(job: Job, runtime_session_id: str, workshop: Workshop) -> None:
    (answer,) = await workshop.state.apply(
        [
            RecordRuntimeSession(
                job_id=job.id,
                epoch=job.epoch,
                runtime_session_id=runtime_session_id,
                at=workshop.clock.now(),
            )
        ]
    )
    job_of(answer)


async def _settle(
    job: Job, before: Tally, recorder: Recorder, outcome: Outcome, workshop: Workshop
) -> Job:
    tally = recorder.tally
    (answer,) = await workshop.state.apply(
        [
            SettleExecution(
                job_id=job.id,
                epoch=job.epoch,
                at=workshop.clock.now(),
                outcome=outcome,
                last_seq=recorder.last_seq,
                total=tally.totals,
                own=tally.totals - before.totals,
                answer=tally.answer,
            )
        ]
    )
    return job_of(answer)


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
        case Refused(why=Why.SESSION_BUSY | Why.FULL, message=message):
            raise NotYetError(message)
        case Refused(message=message):
            raise RefusedError(message)


def _header(job: Job, texts: JobTexts, version: str) -> Header:
    return Header(
        id=job.id,
        agent=job.agent,
        trigger_type=job.trigger_type.value,
        created_at=job.created_at,
        session_id=job.session_id,
        trigger_id=job.trigger_id,
        schedule=job.schedule,
        forked_from=job.forked_from,
        resumed_from=job.resumed_from,
        parent_job_id=job.parent_job_id,
        priority=job.priority,
        dedupe_key=job.dedupe_key,
        inputs=dict(texts.inputs) or None,
        nightherd_version=version,
    )


def _request(
    job: Job, agent: Agent, texts: JobTexts, record: Tally, workshop: Workshop
) -> RuntimeRequest:
    session = workshop.reader.find_session(job.session_id) if job.session_id is not None else None
    settled = session.turn_count if session is not None else 0
    return RuntimeRequest(
        job_id=job.id,
        execution=generate_execution_id(job.id, job.epoch),
        agent=agent,
        prompt=texts.prompt,
        # The session's row counts what has been settled; turns of this job's lost executions are on
        # record in its journal only.
        session_turns=settled - job.turns + record.turns,
        job_turns=record.turns,
        runtime_session_id=job.runtime_session_id,
        values=values_of(agent, texts.inputs),
        environment=workshop.environment,
    )
