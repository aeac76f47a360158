"""Shared sessions: what several journals together say about the one session their jobs were in."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.ids import JobId, SessionId
from nightherd.model.journal.session_header import SessionHeader
from nightherd.model.sessions.session import Session, SessionMode, status_between_jobs
from nightherd.model.units import MicroUsd

AUTONOMOUS = "autonomous"


def session_header(session: Session) -> SessionHeader:
    """What each job's journal says of the session it is in."""
    return SessionHeader(
        mode=session.mode.value,
        created_at=session.created_at,
        runtime_type=session.runtime_type,
        working_directory=session.working_directory,
        channel_id=session.channel_id,
        schedule=session.schedule,
        docker_enabled=session.docker_enabled,
        operation=session.operation if session.operation != AUTONOMOUS else None,
        name=session.name,
        parent_session_id=session.parent_session_id,
        base_job_id=session.base_job_id,
        base_seq=session.base_seq,
        base_messages=session.base_messages,
        base_turns=session.base_turns,
        # A fork gets its rank when it is written; one that was made the current session has another by then.
        is_branch=session.rank < 0 or (session.rank == 0 and session.parent_session_id is not None),
        max_age_s=session.max_age_s,
        max_idle_s=session.max_idle_s,
        imported_from=session.imported_from,
        root=session.root,
        workspace_id=session.workspace_id,
    )


def with_header(session: Session, header: SessionHeader) -> Session:
    """The session that one job's journal alone knows, as the job's header records it; between two jobs."""
    mode = SessionMode(header.mode)
    parent, base = header.parent_session_id, header.base_job_id
    return replace(
        session,
        mode=mode,
        status=status_between_jobs(mode),
        created_at=header.created_at,
        runtime_type=header.runtime_type,
        working_directory=header.working_directory,
        channel_id=header.channel_id,
        schedule=header.schedule,
        docker_enabled=header.docker_enabled,
        operation=header.operation or AUTONOMOUS,
        name=header.name,
        parent_session_id=SessionId(parent) if parent is not None else None,
        base_job_id=JobId(base) if base is not None else None,
        base_seq=header.base_seq,
        base_messages=header.base_messages,
        base_turns=header.base_turns,
        turn_count=session.turn_count + header.base_turns,
        message_count=session.message_count + header.base_messages,
        rank=-1 if header.is_branch else 0,
        max_age_s=header.max_age_s,
        max_idle_s=header.max_idle_s,
        imported_from=header.imported_from,
        root=header.root,
        workspace_id=header.workspace_id,
    )


def without_parent(session: Session) -> Session:
    """The session as if it began with its own jobs."""
    return replace(
        session,
        parent_session_id=None,
        base_job_id=None,
        base_seq=None,
        base_messages=0,
        base_turns=0,
        message_count=session.message_count - session.base_messages,
        turn_count=session.turn_count - session.base_turns,
    )


def with_job(known: Session | None, found: Session) -> Session:
    """The session `known` so far, once another job's journal records it as `found`.

    Where no header names its mode, a session that one job was in may have been that job's own. With a second
    it was not: it is there for the next one. Jobs come oldest first.
    """
    if known is None:
        return found
    later = found if found.mode is not SessionMode.FRESH_PER_JOB else known
    mode = later.mode if later.mode is not SessionMode.FRESH_PER_JOB else SessionMode.PERSISTENT
    found = without_parent(found) if known.parent_session_id is not None else found
    return replace(
        later,
        mode=mode,
        status=status_between_jobs(mode),
        created_at=min(known.created_at, found.created_at),
        last_active_at=max(known.last_active_at, found.last_active_at),
        runtime_type=found.runtime_type,
        working_directory=found.working_directory or known.working_directory,
        root=found.root or known.root,
        workspace_id=found.workspace_id or known.workspace_id,
        runtime_session_id=found.runtime_session_id or known.runtime_session_id,
        cost_microusd=MicroUsd(known.cost_microusd + found.cost_microusd),
        job_count=known.job_count + found.job_count,
        turn_count=known.turn_count + found.turn_count,
        message_count=known.message_count + found.message_count,
        token_estimate=found.token_estimate or known.token_estimate,
    )
