"""Recollection: what a journal alone says about its job.

The journal is the truth of what happened. When the rows were lost or are behind, this is what they are
made again from.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from nightherd.model.hooks import HookEvent
from nightherd.model.ids import JobId, SessionId, WorkerId, generate_execution_id
from nightherd.model.jobs.job import (
    EXECUTION_WORD,
    Execution,
    ExecutionStatus,
    ExitReason,
    Job,
    JobStatus,
    JobTexts,
    TriggerType,
    row_text,
)
from nightherd.model.jobs.outcome import SILENT_END, Outcome, Tally
from nightherd.model.jobs.repeat import is_interrupted_call
from nightherd.model.journal.event import (
    Event,
    SystemEvent,
    ToolResultEvent,
    is_by_hand,
    is_message,
    payload_of,
)
from nightherd.model.journal.system import (
    CheckpointSaved,
    End,
    ExecutionStarted,
    Header,
    HookRan,
    Init,
    Suspension,
    SystemSubtype,
    WorkspaceUsed,
)
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.model.sessions.shared import with_header
from nightherd.model.units import elapsed_ms
from nightherd.model.usage import BYTES_PER_TOKEN, Totals

UNTOLD = Tally()
"""Before the first event."""

LOST = Outcome(
    exit_reason=ExitReason.ERROR,
    error="interrupted: its worker is gone",
    error_code="interrupted",
)
"""How a job ended whose record just stops."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """One execution, by its first line."""

    epoch: int
    worker: str
    at: datetime
    before: Totals
    last_before: datetime | None = None
    """When the record before it ended: the last sign of life of the execution before."""


class Recollection(msgspec.Struct, frozen=True, kw_only=True):
    """A job as its journal records it."""

    header: Header | None = None
    prompt: str | None = None
    runtime: str | None = None
    working_directory: str | None = None
    workspace: str | None = None
    """The workspace its last execution worked in."""
    owners: tuple[Owner, ...] = ()
    tally: Tally = UNTOLD
    epoch: int = 0
    last_seq: int = 0
    last_at: datetime | None = None
    end: End | None = None
    suspended: Suspension | None = None
    """Why the last execution stopped without ending the job, if that is how it ended."""
    last_checkpoint: int = 0
    """The highest number of a checkpoint that is a line."""

    def add(self, event: Event) -> Recollection:
        """What is known after one more event."""
        tally = self.tally.add(event)
        after = replace(
            self,
            tally=tally,
            epoch=max(self.epoch, event.epoch),
            last_seq=event.seq,
            last_at=event.timestamp or self.last_at,
        )
        if not isinstance(event, SystemEvent):
            return after
        is_asked = event.subtype is SystemSubtype.USER_INPUT and not is_by_hand(event)
        if is_asked and self.prompt is None:
            return replace(after, prompt=event.content or "")
        match payload_of(event):
            case Header() as header:
                return replace(after, header=header)
            case ExecutionStarted(worker=worker) if event.timestamp is not None:
                owner = Owner(
                    epoch=event.epoch,
                    worker=worker,
                    at=event.timestamp,
                    before=tally.totals,
                    last_before=self.last_at,
                )
                return replace(
                    after,
                    owners=(*self.owners, owner),
                    end=None,
                    suspended=None,
                    tally=replace(tally, outcome=None),
                )
            case Init(runtime=runtime, working_directory=directory):
                return replace(
                    after,
                    runtime=runtime,
                    working_directory=directory or self.working_directory,
                )
            case WorkspaceUsed(id=workspace, directory=directory):
                return replace(after, workspace=workspace, working_directory=directory)
            case CheckpointSaved(number=number):
                return replace(after, last_checkpoint=max(self.last_checkpoint, number))
            case End() as end:
                return replace(after, end=end)
            case Suspension() as waits:
                waits = msgspec.structs.replace(waits, message=event.content or "")
                return replace(after, suspended=waits)
            case _:
                return after

    @property
    def outcome(self) -> Outcome | None:
        """How the job ended by its own record; None when the record just stops."""
        if self.end is None:
            return None
        reason = ExitReason(self.end.exit_reason)
        said = self.tally.outcome
        if said is not None and said.exit_reason is reason:
            return said
        if said is None and reason is ExitReason.ERROR:
            return SILENT_END
        return Outcome(exit_reason=reason)

    @property
    def own(self) -> Totals:
        """What the last execution did."""
        before = self.owners[-1].before if self.owners else Totals()
        return self.tally.totals - before

    def totals_before(self, epoch: int) -> Totals:
        """What the record had come to when the execution of `epoch`, or the next later one, began."""
        later = (owner.before for owner in self.owners if owner.epoch >= epoch)
        return next(later, self.tally.totals)


def recollect(events: Iterable[Event]) -> Recollection:
    """Read a journal that is no longer written, first line to last.

    An answer that was on its way at its end never came: what is known of its cost counts.
    """
    known = Recollection()
    for event in events:
        known = known.add(event)
    return replace(known, tally=known.tally.cut_off)


class RebuiltRows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a job that only its journal remembers."""

    session: Session | None
    job: Job
    texts: JobTexts
    executions: tuple[Execution, ...]


def rebuilt_rows(known: Recollection) -> RebuiltRows | None:
    """Rows for a job that has none; None when the journal does not even say whose it is.

    A record that just stops was a job whose worker is gone by now.
    """
    header = known.header
    if header is None:
        return None
    outcome = known.outcome or LOST
    job = Job(
        id=JobId(header.id),
        agent=header.agent,
        trigger_type=TriggerType(header.trigger_type),
        trigger_id=header.trigger_id,
        schedule=header.schedule,
        status=outcome.status,
        exit_reason=outcome.exit_reason,
        created_at=header.created_at,
        started_at=known.owners[0].at if known.owners else None,
        finished_at=known.last_at,
        session_id=SessionId(header.session_id) if header.session_id is not None else None,
        runtime_session_id=known.tally.runtime_session_id,
        forked_from=JobId(header.forked_from) if header.forked_from else None,
        resumed_from=JobId(header.resumed_from) if header.resumed_from else None,
        parent_job_id=JobId(header.parent_job_id) if header.parent_job_id else None,
        workflow_run_id=header.workflow_run_id,
        node_id=header.node_id,
        priority=header.priority,
        dedupe_key=header.dedupe_key,
        epoch=known.epoch,
        worker=known.owners[-1].worker if known.owners else None,
        turns=known.tally.turns,
        messages=known.tally.messages,
        input_tokens=known.tally.usage.input_tokens,
        output_tokens=known.tally.usage.output_tokens,
        cache_creation_input_tokens=known.tally.usage.cache_creation_input_tokens,
        cache_read_input_tokens=known.tally.usage.cache_read_input_tokens,
        cost_microusd=known.tally.usage.cost_microusd,
        summary=row_text(known.tally.answer) if known.tally.answer else None,
        error=row_text(outcome.error) if outcome.error else None,
        error_code=outcome.error_code,
        last_seq=known.last_seq,
        workspace_id=known.workspace,
    )
    texts = JobTexts(
        job_id=job.id,
        prompt=known.prompt or "",
        inputs=header.inputs or {},
        summary=known.tally.answer,
        session_note=known.tally.session_note,
    )
    return RebuiltRows(
        session=_session(known, job),
        job=job,
        texts=texts,
        executions=_executions(known, job, outcome),
    )


def _session(known: Recollection, job: Job) -> Session | None:
    """The job's session, as far as one job's journal shows: as its header says, else its own, over with it."""
    if job.session_id is None:
        return None
    totals = known.tally.totals
    alone = Session(
        id=job.session_id,
        agent=job.agent,
        mode=SessionMode.FRESH_PER_JOB,
        status=SessionStatus.COMPLETED,
        runtime_type=known.runtime or "unknown",
        working_directory=known.working_directory or "",
        created_at=job.created_at,
        last_active_at=known.last_at or job.created_at,
        runtime_session_id=job.runtime_session_id,
        job_count=1,
        turn_count=job.turns,
        message_count=job.messages,
        cost_microusd=job.cost_microusd,
        token_estimate=totals.context_tokens + totals.unreported_bytes // BYTES_PER_TOKEN,
    )
    header = known.header.session if known.header is not None else None
    session = with_header(alone, header) if header is not None else alone
    if known.workspace is None or known.working_directory is None:
        return session
    return replace(
        session,
        root=session.agent_directory,
        working_directory=known.working_directory,
        workspace_id=known.workspace,
    )


def _executions(known: Recollection, job: Job, outcome: Outcome) -> tuple[Execution, ...]:
    rows = []
    for place, owner in enumerate(known.owners):
        is_last = place == len(known.owners) - 1
        until = known.tally.totals if is_last else known.owners[place + 1].before
        part = until - owner.before
        ended = is_last and known.end is not None
        finished_at = known.last_at if is_last else known.owners[place + 1].last_before
        rows.append(
            Execution(
                id=generate_execution_id(job.id, owner.epoch),
                job_id=job.id,
                epoch=owner.epoch,
                worker=WorkerId(owner.worker),
                status=ExecutionStatus.FINISHED if ended else ExecutionStatus.LOST,
                trigger_type=EXECUTION_WORD[job.trigger_type],
                trigger_id=job.trigger_id or job.id,
                skill=job.agent,
                started_at=owner.at,
                finished_at=finished_at,
                duration_ms=None if finished_at is None else elapsed_ms(owner.at, finished_at),
                success=ended and outcome.status is JobStatus.COMPLETED,
                error=row_text(outcome.error) if is_last and outcome.error else None,
                turns=part.turns,
                session_id=job.session_id,
                runtime_session_id=job.runtime_session_id,
                cost_microusd=part.usage.cost_microusd,
                input_tokens=part.usage.input_tokens,
                cache_creation_input_tokens=part.usage.cache_creation_input_tokens,
                cache_read_input_tokens=part.usage.cache_read_input_tokens,
                output_tokens=part.usage.output_tokens,
                stop_reason=outcome.stop_reason if ended else None,
                api_duration_ms=outcome.api_duration_ms if ended else None,
            )
        )
    return tuple(rows)


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that was begun for one end of a job."""

    ran: HookRan
    """As last recorded."""
    epoch: int
    """Of the execution that began it first."""


def remembered(events: Iterable[Event], event: HookEvent) -> dict[str, Remembered]:
    """The hooks that were begun for this end of the job, by their ids.

    A job ends once, so whatever its journal says counts; it may wait any number of times, and is in another
    wait once it has gone on, or has said something.
    """
    begun: dict[str, Remembered] = {}
    is_waiting = False
    for one in events:
        if event is HookEvent.SUSPENDED and (_says(one) or (is_waiting and _goes_on(one))):
            begun.clear()
            is_waiting = False
        if not isinstance(one, SystemEvent):
            continue
        is_waiting = is_waiting or one.subtype is SystemSubtype.SUSPENDED
        ran = payload_of(one) if one.subtype is SystemSubtype.HOOK else None
        is_wait = isinstance(ran, HookRan) and ran.event == HookEvent.SUSPENDED
        if isinstance(ran, HookRan) and ran.id and is_wait is (event is HookEvent.SUSPENDED):
            first = begun.get(ran.id)
            begun[ran.id] = Remembered(ran=ran, epoch=first.epoch if first else one.epoch)
    return begun


def _says(event: Event) -> bool:
    """Whether it is something said; a call that was cut off is reported of a job that has not moved."""
    is_cut_off = isinstance(event, ToolResultEvent) and is_interrupted_call(event.error)
    return is_message(event) and not is_cut_off


def _goes_on(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.RESUMED
