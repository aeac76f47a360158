"""Adopting transcripts: a raw copy on the shelf and one session each, taken once and followed while they grow.

Per transcript the order is: copy, row, mark. The mark says that copy and row are as the source was; without
it the next run looks again, so a run killed anywhere is completed by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec
from msgspec.structs import replace

from nightherd.engine.imports.context import (
    ImportContext,
    OnProgress,
    Report,
    Unreadable,
    session_id_for,
)
from nightherd.engine.sessions.external_turns import RETOLD
from nightherd.model.change import AdoptRows, Answer, Applied, Change, Refused
from nightherd.model.ids import SessionId
from nightherd.model.sessions.changes import RefreshAdopted
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.model.text import shorten, whole_text
from nightherd.model.units import FREE, MicroUsd

AGENT = "claude"
"""The agent of such sessions: none of the fleet. Sessions are named by their id."""

RUNTIME = "cli"
NAME_LIMIT = 100
BATCH = 64
"""Copies that share one commit of their rows."""

Sink = Callable[[bytes], None]


class TranscriptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of a transcript."""

    working_directory: str
    first_at: datetime
    last_at: datetime
    title: str | None = None
    messages: int = 0
    turns: int = 0
    token_estimate: int = 0
    cost_microusd: MicroUsd = FREE
    unreadable: tuple[Unreadable, ...] = ()
    why_not: str | None = None
    """Why it is no session of its own."""


class ForeignFile(Protocol):
    """A file that belongs to a transcript."""

    @property
    def name(self) -> str:
        """What its copy is called on the shelf."""

    @property
    def source(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def modified_ns(self) -> int: ...
    def copy(self, sink: Sink) -> Unreadable | None:
        """Everything in it, in order, into `sink`; or why that went wrong."""


class ForeignTranscript(ForeignFile, Protocol):
    """A session's transcript, where its own tool keeps it."""

    @property
    def uuid(self) -> str:
        """The session's id at its own tool."""

    @property
    def companions(self) -> Sequence[ForeignFile]: ...
    def read(self, sink: Sink) -> TranscriptFacts | Unreadable:
        """Everything in it into `sink`, and what it comes to."""


class Batch(msgspec.Struct, kw_only=True):
    """What was copied and is not recorded yet."""

    new: list[Session] = msgspec.field(default_factory=list)
    grown: list[Session] = msgspec.field(default_factory=list)
    marks: list[ForeignFile] = msgspec.field(default_factory=list)


async def import_transcripts(
    found: Sequence[ForeignTranscript],
    context: ImportContext,
    report: Report,
    on_progress: OnProgress,
) -> None:
    """Take over every transcript that is not here yet, or not as it is there."""
    batch = Batch()
    for transcript in found:
        _take(transcript, context, report, batch)
        if len(batch.marks) >= BATCH:
            await _record(batch, context, report)
            batch = Batch()
        on_progress(transcript.uuid)
    await _record(batch, context, report)


def _take(
    transcript: ForeignTranscript, context: ImportContext, report: Report, batch: Batch
) -> None:
    known = context.reader.sessions_of_runtime(transcript.uuid)
    native = next((session for session in known if session.imported_from is None), None)
    if native is not None:
        report.skip(transcript.source, f"it is session {native.id} of a job that was run here")
        return
    for companion in transcript.companions:
        _take_companion(companion, context, report, batch)
    if known and context.shelf.is_current(
        transcript.name, size=transcript.size, modified_ns=transcript.modified_ns
    ):
        report.unchanged += 1
        return
    with context.shelf.draft(transcript.name) as draft:
        facts = transcript.read(draft.write)
        if isinstance(facts, Unreadable):
            report.unreadable.append(facts)
            return
        report.unreadable += facts.unreadable
        mine = next((session for session in known if _is_adopted(session)), None)
        kept = _why_kept(mine, extends_old=draft.extends_old, retold=_retold(mine, context))
        why_not = facts.why_not or kept
        if why_not is not None:
            report.skip(transcript.source, why_not)
            return
        draft.keep()
    if mine is not None or not known:
        _plan(transcript, facts, mine, context, batch)
    else:
        report.count("transcripts")
    batch.marks.append(transcript)


def _is_adopted(session: Session) -> bool:
    """Whether the session was made from a transcript; others may know the same one by a pointer to it."""
    return session.imported_from is not None and session.mode is SessionMode.FRESH_PER_JOB


def _retold(session: Session | None, context: ImportContext) -> int:
    """How many jobs of the session only retell what its transcript said."""
    jobs = context.reader.jobs_of_session(session.id) if session is not None else ()
    return sum(job.worker == RETOLD for job in jobs)


def _why_kept(mine: Session | None, *, extends_old: bool, retold: int = 0) -> str | None:
    """Why a copy that was taken before stays as it is."""
    if not extends_old:
        return "its beginning differs from the copy; the copy is kept"
    if mine is not None and (mine.job_count > retold or mine.status is not SessionStatus.PAUSED):
        return f"session {mine.id} has jobs of its own by now, which keep its transcript"
    return None


def _take_companion(
    companion: ForeignFile, context: ImportContext, report: Report, batch: Batch
) -> None:
    if context.shelf.is_current(
        companion.name, size=companion.size, modified_ns=companion.modified_ns
    ):
        return
    with context.shelf.draft(companion.name) as draft:
        problem = companion.copy(draft.write)
        if problem is not None:
            report.unreadable.append(problem)
            return
        kept = _why_kept(None, extends_old=draft.extends_old)
        if kept is not None:
            report.skip(companion.source, kept)
            return
        draft.keep()
    report.count("companions")
    batch.marks.append(companion)


def _plan(
    transcript: ForeignTranscript,
    facts: TranscriptFacts,
    mine: Session | None,
    context: ImportContext,
    batch: Batch,
) -> None:
    session = Session(
        id=mine.id if mine is not None else _id_for(transcript.uuid, context),
        agent=AGENT,
        mode=SessionMode.FRESH_PER_JOB,
        status=SessionStatus.PAUSED,
        runtime_type=RUNTIME,
        runtime_session_id=transcript.uuid,
        working_directory=whole_text(facts.working_directory),
        created_at=facts.first_at,
        last_active_at=facts.last_at,
        name=_name(facts.title, context),
        imported_from=transcript.source,
        cost_microusd=facts.cost_microusd,
        turn_count=facts.turns,
        message_count=facts.messages,
        token_estimate=facts.token_estimate,
    )
    if mine is None:
        batch.new.append(session)
    else:
        batch.grown.append(replace(session, number=mine.number, job_count=mine.job_count))


def _id_for(uuid: str, context: ImportContext) -> SessionId:
    return session_id_for(
        AGENT, uuid, lambda known: _is_adopted(known) and known.runtime_session_id == uuid, context
    )


def _name(title: str | None, context: ImportContext) -> str | None:
    """Masked before it is cut: half a secret would not be found."""
    if title is None:
        return None
    text = " ".join(str(context.secrets.mask(whole_text(title))).split())
    return shorten(text, NAME_LIMIT)


async def _record(batch: Batch, context: ImportContext, report: Report) -> None:
    """Rows for what was copied, and then the marks. In a dry run, only the counts."""
    grown = [
        session for session in batch.grown if context.reader.find_session(session.id) != session
    ]
    report.unchanged += len(batch.grown) - len(grown)
    if context.writers is None:
        _count(report, "sessions", len(batch.new))
        _count(report, "refreshed", len(grown))
        return
    context.shelf.sync()
    changes: list[Change] = [
        RefreshAdopted(session=session, known_jobs=session.job_count) for session in grown
    ]
    if batch.new:
        changes.append(AdoptRows(rows=tuple(batch.new), source=AGENT))
    for change, answer in zip(changes, await context.writers.state.apply(changes), strict=True):
        _account(change, answer, report)
    for copied in batch.marks:
        context.shelf.mark(copied.name, modified_ns=copied.modified_ns)


def _account(change: Change, answer: Answer, report: Report) -> None:
    match change, answer:
        case AdoptRows(rows=rows), Applied(rows=written):
            _count(report, "sessions", len(written))
            report.unchanged += len(rows) - len(written)
        case RefreshAdopted(), Applied():
            report.count("refreshed")
        case RefreshAdopted(session=session), Refused(message=message):
            report.skip(session.imported_from or session.id, message)
        case _:
            pass


def _count(report: Report, kind: str, number: int) -> None:
    if number:
        report.count(kind, number)
