"""Sessions: what forking, choosing, naming, expiring and cleaning up do."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Why
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import SessionId
from nightherd.model.sessions.changes import (
    ExpireSession,
    ForkSession,
    RemoveSession,
    RenameSession,
    UseSession,
)
from nightherd.model.sessions.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionMode,
    SessionStatus,
    is_expired,
)


def fork(change: ForkSession, rows: Rows) -> Answer:
    """A session of its own from here on. Its parent is not touched, whatever state that is in."""
    session = change.session
    if session.parent_session_id is None or rows.get(Session, session.parent_session_id) is None:
        return _missing(session.parent_session_id or SessionId(""))
    if rows.get(Session, session.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a session {session.id} already")
    return Applied(rows=(replace(session, number=rows.next_session_number(), rank=-1),))


def use(change: UseSession, rows: Rows) -> Answer:
    """The next job of the session's key continues in it."""
    session = _kept(change.session_id, rows)
    if isinstance(session, Refused):
        return session
    if session.mode is SessionMode.FRESH_PER_JOB:
        found = f"session {session.id} is {session.mode}: every job of its agent begins a new one"
        return Refused(why=Why.STATUS, message=found)
    if session.status in SESSION_LIFECYCLE.terminal:
        return Refused(
            why=Why.SESSION_OVER, message=f"session {session.id} is {session.status.value}"
        )
    current = rows.current_session(session.key)
    if current is not None and current.id == session.id:
        return Applied(rows=())
    # Above every number there is, so that the next session to begin comes after it.
    rank = max(rows.next_session_number(), (current.place if current is not None else 0) + 1)
    return Applied(rows=(replace(session, rank=rank),))


def rename(change: RenameSession, rows: Rows) -> Answer:
    """The session, called otherwise."""
    session = _kept(change.session_id, rows)
    if isinstance(session, Refused):
        return session
    return Applied(rows=(replace(session, name=change.name),))


def expire(change: ExpireSession, rows: Rows) -> Answer:
    """Expire a session that has not been used for too long."""
    session = rows.get(Session, change.session_id)
    if session is None:
        return _missing(change.session_id)
    if not SESSION_LIFECYCLE.allows(session.status, SessionStatus.EXPIRED):
        return Refused(why=Why.STATUS, message=f"session {session.id} is {session.status.value}")
    if not is_expired(session, change.at):
        return Refused(why=Why.TOO_EARLY, message=f"session {session.id} has time left")
    if rows.open_jobs_in(session.id):
        return Refused(why=Why.SESSION_BUSY, message=f"jobs wait for session {session.id}")
    return Applied(rows=(replace(session, status=SessionStatus.EXPIRED),))


def remove(change: RemoveSession, rows: Rows) -> Answer:
    """A tombstone: the row stays and says when it was cleaned up."""
    session = _kept(change.session_id, rows)
    if isinstance(session, Refused):
        return session
    if session.status is SessionStatus.ACTIVE or rows.open_jobs_in(session.id):
        return Refused(why=Why.SESSION_BUSY, message=f"session {session.id} is in use")
    status = session.status
    if SESSION_LIFECYCLE.allows(status, SessionStatus.EXPIRED):
        status = SessionStatus.EXPIRED
    return Applied(rows=(replace(session, status=status, removed_at=change.at),))


def _kept(session_id: SessionId, rows: Rows) -> Session | Refused:
    session = rows.get(Session, session_id)
    if session is None:
        return _missing(session_id)
    if session.removed_at is not None:
        return Refused(why=Why.SESSION_OVER, message=f"session {session_id} was cleaned up")
    return session


def _missing(session_id: SessionId) -> Refused:
    return Refused(why=Why.MISSING, message=f"there is no session {session_id}")
