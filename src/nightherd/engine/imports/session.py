"""Adopting an exported session: its jobs' journals first, then every row of it in one change.

Killed on the way, nothing of it is there but journals that no row names; the same import completes it. Done
again, it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from nightherd.engine.imports.context import ImportContext
from nightherd.errors import InvalidValueError, RefusedError
from nightherd.model.change import AdoptRows, Applied, Row
from nightherd.model.ids import JobId
from nightherd.model.journal.event import Event
from nightherd.model.journal.recollection import RebuiltRows, rebuilt_rows, recollect
from nightherd.model.sessions.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionMode,
    SessionStatus,
    status_between_jobs,
)
from nightherd.views.export.claude import as_transcript
from nightherd.views.export.document import to_export

SOURCE = "session import"


class SessionFile(msgspec.Struct, frozen=True, kw_only=True):
    """An exported session as its file says it."""

    source: str
    session: Session
    ancestors: Sequence[Session]
    events: Mapping[JobId, Sequence[Event]]
    """What was said, job by job, in their order."""


class AdoptedSession(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    session: Session
    jobs: int
    is_new: bool


async def import_session_file(file: SessionFile, context: ImportContext) -> AdoptedSession:
    """Take the session over, with what it was forked from. `RefusedError` when its ids mean something else here."""
    known = context.reader.find_session(file.session.id)
    rows: list[Row] = []
    jobs = 0
    for job_id, events in file.events.items():
        rebuilt = _rebuilt(job_id, events)
        if _is_here(rebuilt, events, context):
            continue
        jobs += 1
        if context.writers is not None:
            masked = [context.secrets.mask_event(event) for event in events]
            context.writers.journals.write(job_id, masked)
        rows += [rebuilt.job, rebuilt.texts, *rebuilt.executions]
    for session in (*file.ancestors, file.session):
        here = context.reader.find_session(session.id)
        if here is not None and (here.agent, here.created_at) != (
            session.agent,
            session.created_at,
        ):
            raise RefusedError(f"session {session.id} is another one here")
        if here is None:
            rows.append(_over(session, file.source, is_asked=session is file.session))
    if rows and context.writers is not None:
        context.writers.journals.sync()
        (answer,) = await context.writers.state.apply([AdoptRows(rows=tuple(rows), source=SOURCE)])
        if not isinstance(answer, Applied):
            raise RefusedError(answer.message)
    for session in (*file.ancestors, file.session):
        _shelve(session, context)
    return AdoptedSession(session=known or file.session, jobs=jobs, is_new=known is None)


def _shelve(session: Session, context: ImportContext) -> None:
    """What Claude continues from, made from the record; a copy of its own transcript that is here stays."""
    here = context.reader.find_session(session.id)
    uuid = session.runtime_session_id
    if here is None or uuid is None or context.writers is None:
        return
    if not context.has_transcripts(session.runtime_type):
        return
    exported = to_export(
        context.reader,
        context.journals,
        here,
        at=here.last_active_at,
        version=context.version,
        is_at_work=lambda worker: True,
    )
    if not context.shelf.has(f"{uuid}.jsonl"):
        with context.shelf.draft(f"{uuid}.jsonl") as draft:
            for piece in as_transcript(exported):
                draft.write(piece.encode())
            draft.keep()
        context.shelf.sync()


def _rebuilt(job_id: JobId, events: Sequence[Event]) -> RebuiltRows:
    rows = rebuilt_rows(recollect(events))
    if rows is None or rows.job.id != job_id:
        raise InvalidValueError(f"the events of {job_id} do not begin with its header")
    return rows


def _is_here(rebuilt: RebuiltRows, events: Sequence[Event], context: ImportContext) -> bool:
    """Whether the job is on record here already. One that differs in what was said is another job."""
    job_id = rebuilt.job.id
    known = context.reader.find_job(job_id)
    here = context.journals.read(job_id, load_blobs=False)
    first = next(iter(here), None)
    mine = events[0]
    is_same = first is None or (first.timestamp, first.seq) == (mine.timestamp, mine.seq)
    if not is_same or (known is not None and known.created_at != rebuilt.job.created_at):
        raise RefusedError(f"job {job_id} is another one here")
    return known is not None


def _over(session: Session, source: str, *, is_asked: bool) -> Session:
    """The session as it is here: nothing runs in it, and no job joins it unasked."""
    status = status_between_jobs(session.mode) if is_asked else SessionStatus.COMPLETED
    if session.status in SESSION_LIFECYCLE.terminal or session.mode is SessionMode.FRESH_PER_JOB:
        status = SessionStatus.COMPLETED
    # What it was forked from is here for its sake alone: lists leave it out.
    removed_at = None if is_asked else session.last_active_at
    return replace(
        session,
        status=status,
        rank=-1,
        number=0,
        imported_from=source,
        removed_at=removed_at,
    )
