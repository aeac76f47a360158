"""Sessions as every surface shows them: found by reference, listed in pages, described as plain data.

What is shown is true now: a session that waits beyond its time is expired whether or not that has been recorded
that, and one in which a job runs has as many messages as have been said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypedDict

import msgspec
from msgspec.structs import replace

from nightherd.errors import JournalError, SessionNotFoundError
from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.event import AssistantEvent
from nightherd.model.journal.message import Speaker
from nightherd.model.sessions.filter import session_filter_of
from nightherd.model.sessions.observed import ObservedSession, lost_job_of, with_lost_job
from nightherd.model.sessions.session import (
    Session,
    SessionMode,
    SessionQuery,
    SessionStatus,
    expires_at,
    is_expired,
)
from nightherd.model.units import to_usd
from nightherd.model.usage import tokens_in
from nightherd.next_step import Action, NextStep
from nightherd.ports import Journals, StateReader
from nightherd.views.jobs.jobs import (
    LAST,
    IsAtWork,
    first_lost,
    lost_job_row,
    observe_jobs,
    timestamp,
)
from nightherd.views.jobs.rows import LostJobRow
from nightherd.views.sessions.conversation import (
    Segment,
    Spoken,
    count_messages,
    find_session_id,
    segments_of,
)

PAGE = 200
RECENT = 64
"""Events of a running job that are looked at for how large the conversation is."""

WAITING = (SessionStatus.CREATED, SessionStatus.PAUSED)


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list, and where the next begins; None when this is the last."""

    sessions: Sequence[Session]
    next_before: int | None


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """One session with everything around it."""

    session: Session
    jobs: Sequence[ObservedJob]
    parts: Sequence[Segment]
    """What its conversation is made of."""
    forks: Sequence[Session]


def find_session(reader: StateReader, reference: str) -> Session:
    """The one session that `reference` means: our id or the runtime's, a unique prefix of one, or `@last`."""
    if reference == LAST:
        newest = reader.list_sessions(SessionQuery(limit=1))
        if not newest:
            raise SessionNotFoundError("there are no sessions yet", next_step=NextStep(Action.RUN))
        return newest[0]
    return get_session(reader, find_session_id(reader, reference))


def get_session(reader: StateReader, session_id: SessionId) -> Session:
    """The session's row as it is now."""
    session = reader.find_session(session_id)
    if session is None:
        raise SessionNotFoundError(
            f"there is no session {session_id}", next_step=NextStep(Action.LIST_SESSIONS)
        )
    return session


def latest_of_agent(reader: StateReader, agent: str) -> Session:
    """The session that the agent used last, of the newest so many; unused forks do not count."""
    newest = reader.list_sessions(SessionQuery(agent=agent, limit=PAGE))
    used = [one for one in newest if one.job_count or one.parent_session_id is None]
    if not used:
        raise SessionNotFoundError(
            f"agent {agent!r} has no session yet", next_step=NextStep(Action.RUN, agent=agent)
        )
    return max(used, key=lambda session: (session.last_active_at, session.number))


def status_at(session: Session, now: datetime) -> SessionStatus:
    """Where it stands now, noted or not."""
    return SessionStatus.EXPIRED if is_expired(session, now) else session.status


def list_page(
    reader: StateReader,
    journals: Journals,
    query: SessionQuery,
    is_at_work: IsAtWork,
    now: datetime,
) -> SessionPage:
    """One page of sessions, newest first, by where they stand now."""
    found = list(islice(_matching(reader, query, now), query.limit + 1))
    sessions = [up_to_now(reader, journals, one, is_at_work, now) for one in found[: query.limit]]
    more = len(found) > query.limit
    return SessionPage(sessions=sessions, next_before=sessions[-1].number if more else None)


def _matching(reader: StateReader, query: SessionQuery, now: datetime) -> Iterator[Session]:
    """The sessions the query is about, newest first."""
    filter = session_filter_of(query)
    if filter is None:
        return iter(())
    wanted = filter.statuses
    if not set(wanted) & {*WAITING, SessionStatus.EXPIRED}:
        return iter(reader.list_sessions(replace(query, limit=query.limit + 1)))
    # Whether a waiting session has expired may not be on record yet, so more of them are read than are shown.
    of_record = {*wanted, *(WAITING if SessionStatus.EXPIRED in wanted else ())}
    statuses = tuple(status for status in SessionStatus if status in of_record)
    rows = SessionQuery(
        filter=replace(filter, statuses=statuses),
        before=query.before,
        limit=max(query.limit + 1, PAGE),
    )
    return (one for one in every_session(reader, rows) if status_at(one, now) in wanted)


def every_session(reader: StateReader, query: SessionQuery) -> Iterator[Session]:
    """Every session that the query is about, newest first; its limit is how many are read at once."""
    while True:
        page = reader.list_sessions(query)
        yield from page
        if len(page) < query.limit:
            return
        query = replace(query, before=page[-1].number)


def show_session(
    reader: StateReader,
    journals: Journals,
    session: Session,
    is_at_work: IsAtWork,
    now: datetime,
) -> SessionView:
    """The session and everything around it."""
    parts = segments_of(reader, journals, session)
    return SessionView(
        session=up_to_now(reader, journals, session, is_at_work, now, parts),
        jobs=observe_jobs(reader, reader.jobs_of_session(session.id), is_at_work, now),
        parts=parts,
        forks=reader.sessions_of_parent(session.id),
    )


def up_to_now(
    reader: StateReader,
    journals: Journals,
    session: Session,
    is_at_work: IsAtWork,
    now: datetime,
    parts: Sequence[Segment] | None = None,
) -> ObservedSession:
    """The session as it stands now; of one in use, what the running job has come to is counted too.

    With a journal that cannot be read, it is as its row has it: `session show` and `doctor` report that.
    """
    session = replace(session, status=status_at(session, now))
    if session.status is not SessionStatus.ACTIVE:
        return with_lost_job(session, None)
    jobs = observe_jobs(reader, reader.jobs_of_session(session.id), is_at_work, now)
    try:
        counted = _counted(reader, journals, session, parts)
    except JournalError:
        counted = session
    return with_lost_job(counted, first_lost(jobs))


def _counted(
    reader: StateReader, journals: Journals, session: Session, parts: Sequence[Segment] | None
) -> Session:
    """The session with what its running job has come to."""
    parts = segments_of(reader, journals, session) if parts is None else parts
    if not parts:
        return session
    turns, tokens, at = _latest(journals, parts[-1].job)
    job = parts[-1].job
    return replace(
        session,
        message_count=max(count_messages(parts), session.message_count),
        token_estimate=tokens or session.token_estimate,
        turn_count=session.turn_count + max(turns - job.turns, 0),
        last_active_at=max(at, session.last_active_at)
        if at is not None
        else session.last_active_at,
    )


def _latest(journals: Journals, job: Job) -> tuple[int, int | None, datetime | None]:
    """The last turn, the tokens last reported and the last sign of life of a running job."""
    turns, tokens, at = 0, None, None
    for event in journals.last(job.id, RECENT):
        turns, at = max(turns, event.turn or 0), event.timestamp or at
        if isinstance(event, AssistantEvent) and event.usage is not None:
            tokens = tokens_in(event.usage) or tokens
    return turns, tokens, at


class SessionRow(TypedDict):
    """A session as lists have it."""

    id: str
    agent: str
    mode: SessionMode
    status: SessionStatus
    lost: LostJobRow | None
    name: str | None
    channel_id: str | None
    schedule: str | None
    runtime_type: str
    runtime_session_id: str | None
    working_directory: str
    agent_directory: str
    workspace_id: str | None
    docker_enabled: bool
    created_at: str
    last_active_at: str
    expires_at: str | None
    removed_at: str | None
    message_count: int
    token_estimate: int
    turn_count: int
    job_count: int
    cost_usd: float
    parent_session_id: str | None
    base_job_id: str | None
    base_seq: int | None
    base_messages: int
    base_turns: int
    imported_from: str | None
    number: int


class SessionDocument(SessionRow):
    """One session with the ids of its jobs and of its forks."""

    jobs: list[str]
    forks: list[str]


class SessionCleanup(TypedDict):
    """The ids of sessions that were cleaned up, in a dry run of those that would be, and of those that are in use."""

    is_dry_run: bool
    removed: list[str]
    kept: list[str]


class CallRow(TypedDict):
    """A call of a tool in a message."""

    id: str | None
    tool: str
    input: Any


class CallResultRow(TypedDict):
    """How a call came out."""

    id: str | None
    success: bool | None
    error: str | None


class MessageRow(TypedDict):
    """A message: who said what, and where it stands on record."""

    message: int
    speaker: Speaker
    text: str
    calls: list[CallRow]
    results: list[CallResultRow]
    job_id: str
    seq: int
    turn: int | None
    timestamp: str | None


def session_row(session: Session) -> SessionRow:
    """A session as lists and `session show` give it."""
    ends = expires_at(session) if session.status in WAITING else None
    return {
        "id": session.id,
        "agent": session.agent,
        "mode": session.mode,
        "status": session.status,
        "lost": lost_job_row(lost_job_of(session)),
        "name": session.name,
        "channel_id": session.channel_id,
        "schedule": session.schedule,
        "runtime_type": session.runtime_type,
        "runtime_session_id": session.runtime_session_id,
        "working_directory": session.working_directory,
        "agent_directory": session.agent_directory,
        "workspace_id": session.workspace_id,
        "docker_enabled": session.docker_enabled,
        "created_at": timestamp(session.created_at),
        "last_active_at": timestamp(session.last_active_at),
        "expires_at": timestamp(ends),
        "removed_at": timestamp(session.removed_at),
        "message_count": session.message_count,
        "token_estimate": session.token_estimate,
        "turn_count": session.turn_count,
        "job_count": session.job_count,
        "cost_usd": to_usd(session.cost_microusd),
        "parent_session_id": session.parent_session_id,
        "base_job_id": session.base_job_id,
        "base_seq": session.base_seq,
        "base_messages": session.base_messages,
        "base_turns": session.base_turns,
        "imported_from": session.imported_from,
        "number": session.number,
    }


def session_document(view: SessionView) -> SessionDocument:
    """Everything about one session but what was said in it."""
    return {
        **session_row(view.session),
        "jobs": [job.id for job in view.jobs],
        "forks": [fork.id for fork in view.forks],
    }


def cleanup_document(
    removed: Sequence[Session], kept: Sequence[Session], *, is_dry_run: bool
) -> SessionCleanup:
    """What a cleanup did, or would do."""
    return {
        "is_dry_run": is_dry_run,
        "removed": [one.id for one in removed],
        "kept": [one.id for one in kept],
    }


def message_document(spoken: Spoken) -> MessageRow:
    """A message: who said what, and where it stands on record."""
    message = spoken.message
    at = message.last.timestamp
    return {
        "message": spoken.number,
        "speaker": message.speaker,
        "text": message.text,
        "calls": [
            {"id": call.tool_use_id, "tool": call.tool_name, "input": call.input}
            for call in message.calls
        ],
        "results": [
            {"id": result.tool_use_id, "success": result.success, "error": result.error}
            for result in message.results
        ],
        "job_id": spoken.job_id,
        "seq": message.seq,
        "turn": message.turn,
        "timestamp": timestamp(at),
    }
