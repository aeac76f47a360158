"""The family of a session as a graph: sessions with their jobs, and an edge for each fork; bounded in size."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason, TriggerType
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.sessions.observed import lost_job_of
from nightherd.model.sessions.session import (
    Session,
    SessionKey,
    SessionMode,
    SessionStatus,
    expires_at,
)
from nightherd.model.units import to_usd
from nightherd.ports import Journals, StateReader
from nightherd.views.jobs.jobs import error_of, lost_job_row, lost_row, observe_jobs, timestamp
from nightherd.views.jobs.rows import JobErrorRow, LostJobRow, LostRow
from nightherd.views.sessions.conversation import DEEPEST, messages_in
from nightherd.views.sessions.sessions import WAITING, up_to_now

if TYPE_CHECKING:
    from nightherd.views.jobs.jobs import IsAtWork


class FamilyJob(TypedDict):
    """A job of a session: what of the conversation it is, and how it came out."""

    id: str
    status: JobStatus
    exit_reason: ExitReason | None
    suspend_reason: SuspendReason | None
    lost: LostRow | None
    trigger_type: TriggerType
    first_message: int
    messages: int
    turns: int
    cost_usd: float
    created_at: str
    started_at: str | None
    finished_at: str | None
    summary: str | None
    error: JobErrorRow | None


class FamilyNode(TypedDict):
    """A session of the family. Of its jobs, the newest are there; `is_current` when its agent's next job continues it."""

    id: str
    agent: str
    name: str | None
    mode: SessionMode
    status: SessionStatus
    lost: LostJobRow | None
    is_current: bool
    message_count: int
    base_messages: int
    turn_count: int
    job_count: int
    cost_usd: float
    created_at: str
    last_active_at: str
    expires_at: str | None
    removed_at: str | None
    workspace_id: str | None
    parent_session_id: str | None
    jobs: list[FamilyJob]
    jobs_left_out: int
    forks_left_out: int


class FamilyEdge(TypedDict):
    """A fork: `session` begins with the first messages of `parent`, the last of which ends at event `seq` of a job."""

    session: str
    parent: str
    job_id: str | None
    seq: int | None
    message: int


class SessionFamily(TypedDict):
    """The family of `session`, whose oldest known ancestor is `root`; `is_whole` unless sessions were left out."""

    root: str
    session: str
    is_whole: bool
    nodes: list[FamilyNode]
    edges: list[FamilyEdge]


def show_family(
    reader: StateReader,
    journals: Journals,
    session: Session,
    is_at_work: IsAtWork,
    now: datetime,
    *,
    most_sessions: int,
    most_jobs: int,
) -> SessionFamily:
    """Return the family of a session: those that are nearest to it, and of each the newest jobs."""
    forks: dict[SessionId, Sequence[Session]] = {}
    members, is_whole = _nearest(reader, session, most_sessions, forks)
    members.sort(key=lambda one: (one.created_at, one.number))
    known = {one.id for one in members}
    current: dict[SessionKey, SessionId | None] = {}
    nodes = []
    for one in members:
        if one.id not in forks:
            forks[one.id] = reader.sessions_of_parent(one.id)
        left_out = sum(fork.id not in known for fork in forks[one.id])
        observed = up_to_now(reader, journals, one, is_at_work, now)
        jobs, jobs_left_out = _jobs(reader, journals, one, is_at_work, now, most_jobs)
        node = _node(observed, jobs, jobs_left_out, left_out)
        node["is_current"] = _is_current(reader, observed, current)
        nodes.append(node)
    return {
        "root": _root(reader, session).id,
        "session": session.id,
        "is_whole": is_whole,
        "nodes": nodes,
        "edges": [_edge(one) for one in members if one.parent_session_id in known],
    }


def _nearest(
    reader: StateReader, session: Session, most: int, forks: dict[SessionId, Sequence[Session]]
) -> tuple[list[Session], bool]:
    """Return the sessions around one, nearest first, and whether they are the whole family."""
    found = {session.id: session}
    waiting = deque([session])
    while waiting:
        one = waiting.popleft()
        forks[one.id] = reader.sessions_of_parent(one.id)
        parent = None
        if one.parent_session_id is not None and one.parent_session_id not in found:
            parent = reader.find_session(one.parent_session_id)
        for near in ([parent] if parent is not None else []) + list(forks[one.id]):
            if near.id in found:
                continue
            if len(found) == most:
                return list(found.values()), False
            found[near.id] = near
            waiting.append(near)
    return list(found.values()), True


def _root(reader: StateReader, session: Session) -> Session:
    """Return the oldest ancestor that is on record."""
    seen = {session.id}
    while session.parent_session_id is not None and len(seen) < DEEPEST:
        parent = reader.find_session(session.parent_session_id)
        if parent is None or parent.id in seen:
            break
        seen.add(parent.id)
        session = parent
    return session


def _is_current(
    reader: StateReader, session: Session, current: dict[SessionKey, SessionId | None]
) -> bool:
    """Whether the next job of the session's agent, channel and schedule continues in it."""
    if session.mode is SessionMode.FRESH_PER_JOB or session.status is SessionStatus.EXPIRED:
        return False
    if session.key not in current:
        found = reader.current_session(session.key)
        current[session.key] = None if found is None else found.id
    return current[session.key] == session.id


def _jobs(
    reader: StateReader,
    journals: Journals,
    session: Session,
    is_at_work: IsAtWork,
    now: datetime,
    most: int,
) -> tuple[list[FamilyJob], int]:
    """Return the newest jobs of a session, oldest first, and how many are left out."""
    jobs: Sequence[Job] = reader.jobs_of_session(session.id)
    counts = [messages_in(journals, job) for job in jobs]
    left_out = max(len(jobs) - most, 0)
    first = session.base_messages + 1 + sum(counts[:left_out])
    rows = []
    shown = observe_jobs(reader, jobs[left_out:], is_at_work, now)
    for job, count in zip(shown, counts[left_out:], strict=True):
        rows.append(_job(job, first, count))
        first += count
    return rows, left_out


def _job(job: ObservedJob, first: int, messages: int) -> FamilyJob:
    return {
        "id": job.id,
        "status": job.status,
        "exit_reason": job.exit_reason,
        "suspend_reason": job.suspend_reason,
        "lost": lost_row(job.lost),
        "trigger_type": job.trigger_type,
        "first_message": first,
        "messages": messages,
        "turns": job.turns,
        "cost_usd": to_usd(job.cost_microusd),
        "created_at": timestamp(job.created_at),
        "started_at": timestamp(job.started_at),
        "finished_at": timestamp(job.finished_at),
        "summary": job.summary,
        "error": error_of(job),
    }


def _node(
    session: Session, jobs: list[FamilyJob], jobs_left_out: int, forks_left_out: int
) -> FamilyNode:
    ends = expires_at(session) if session.status in WAITING else None
    return {
        "id": session.id,
        "agent": session.agent,
        "name": session.name,
        "mode": session.mode,
        "status": session.status,
        "lost": lost_job_row(lost_job_of(session)),
        "is_current": False,
        "message_count": session.message_count,
        "base_messages": session.base_messages,
        "turn_count": session.turn_count,
        "job_count": session.job_count,
        "cost_usd": to_usd(session.cost_microusd),
        "created_at": timestamp(session.created_at),
        "last_active_at": timestamp(session.last_active_at),
        "expires_at": timestamp(ends),
        "removed_at": timestamp(session.removed_at),
        "workspace_id": session.workspace_id,
        "parent_session_id": session.parent_session_id,
        "jobs": jobs,
        "jobs_left_out": jobs_left_out,
        "forks_left_out": forks_left_out,
    }


def _edge(session: Session) -> FamilyEdge:
    return {
        "session": session.id,
        "parent": session.parent_session_id or "",
        "job_id": session.base_job_id,
        "seq": session.base_seq,
        "message": session.base_messages,
    }
