"""The session that an agent continues, for programs: its info, its name, and clearing it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nightherd.engine.operations import sessions as operations
from nightherd.engine.operations.requests import ClearSession, UpdateSession
from nightherd.library.state import open_changes, reading
from nightherd.model.sessions.session import Session, SessionKey, SessionMode, SessionQuery
from nightherd.ports import StateReader
from nightherd.views.sessions.conversation import find_session_id


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """An agent's session, with the fields of `sessions/<agent>.json`."""

    agent_name: str
    session_id: str
    """The runtime's id where it has one, else ours."""
    created_at: datetime
    last_used_at: datetime
    job_count: int
    mode: str
    working_directory: str
    runtime_type: str
    docker_enabled: bool


def get_session_info(state_dir: str | Path, agent: str) -> SessionInfo | None:
    """Return the agent's persistent session, else its latest; None when it has none."""
    with reading(state_dir) as reader:
        session = _persistent(reader, agent)
        if session is None:
            latest = reader.list_sessions(SessionQuery(agent=agent, limit=1))
            session = latest[0] if latest else None
    return None if session is None else _info(session)


async def update_session_info(
    state_dir: str | Path, session: str, *, name: str | None = None, is_current: bool = False
) -> SessionInfo:
    """Name a session, or make it the one that the agent's next job continues; return its info.

    Everything else about a session is what its jobs did.
    """
    root = Path(state_dir)
    async with open_changes(root) as record:
        session_id = find_session_id(record.reader, session)
        request = UpdateSession(session_id=session_id, name=name, is_current=is_current)
        row = await operations.update_session(request, record)
    return _info(row)


async def clear_session(state_dir: str | Path, agent: str) -> bool:
    """Clear the agent's persistent session: its next job begins a new one. Whether there was one.

    The record of the session stays. `RefusedError` while a job is in it.
    """
    root, is_cleared = Path(state_dir), False
    async with open_changes(root) as record:
        # An earlier session of the agent would take the place of the one that is cleared.
        while (session := _persistent(record.reader, agent)) is not None:
            await operations.clear_session(ClearSession(session_id=session.id), record)
            is_cleared = True
    return is_cleared


def _persistent(reader: StateReader, agent: str) -> Session | None:
    return reader.current_session(SessionKey(agent=agent, mode=SessionMode.PERSISTENT))


def _info(session: Session) -> SessionInfo:
    return SessionInfo(
        agent_name=session.agent,
        session_id=session.runtime_session_id or session.id,
        created_at=session.created_at,
        last_used_at=session.last_active_at,
        job_count=session.job_count,
        mode=session.operation,
        working_directory=session.working_directory,
        runtime_type=session.runtime_type,
        docker_enabled=session.docker_enabled,
    )
