"""Session cleanup: unused sessions expire, and old ones are removed.

Rows and journals stay: expiring is a status, cleaning up leaves a tombstone. What is in use, or waited for,
is never touched; each change looks again in its own transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from nightherd.model.change import Applied, Change
from nightherd.model.sessions.changes import ExpireSession, RemoveSession
from nightherd.model.sessions.session import SESSION_LIFECYCLE, Session, SessionQuery, is_expired
from nightherd.ports import Clock, StateReader, StateWriter
from nightherd.views.sessions.sessions import every_session

PAGE = 500
AT_ONCE = 100
"""Sessions expired in one pass; a worker's next pass takes the next."""


class Keeper(Protocol):
    """What looking after sessions needs; a context and a record are one."""

    @property
    def state(self) -> StateWriter: ...
    @property
    def reader(self) -> StateReader: ...
    @property
    def clock(self) -> Clock: ...


class Cleanup(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a cleanup."""

    removed: Sequence[Session]
    """Cleaned up; in a dry run, what would be."""
    kept: Sequence[Session] = ()
    """Would have been cleaned up, but are in use."""


async def expire_sessions(keeper: Keeper) -> int:
    """End sessions whose time has come; how many. Any number of processes may ask."""
    at = keeper.clock.now()
    due = [
        session
        for session in keeper.reader.sessions_to_expire(at, AT_ONCE)
        if is_expired(session, at)
    ]
    if not due:
        return 0
    changes: list[Change] = [ExpireSession(session_id=one.id, at=at) for one in due]
    answers = await keeper.state.apply(changes)
    return sum(isinstance(answer, Applied) for answer in answers)


async def clean_up(
    keeper: Keeper, *, older_than: timedelta | None = None, is_dry: bool = False
) -> Cleanup:
    """Clean up every session that has expired; with `older_than`, every one that was unused that long.

    One that is in use is kept and named. Done again, it finds nothing.
    """
    due = find_due(keeper.reader, keeper.clock.now(), older_than)
    return Cleanup(removed=due) if is_dry else await remove_sessions(due, keeper)


def find_due(reader: StateReader, at: datetime, older_than: timedelta | None) -> list[Session]:
    """Return the sessions that a cleanup would clean up, those among them that are in use too."""
    return [one for one in _sessions(reader) if _is_due(one, at, older_than)]


async def remove_sessions(due: Sequence[Session], keeper: Keeper) -> Cleanup:
    """Clean up these sessions; one that is in use is kept."""
    at = keeper.clock.now()
    removed: list[Session] = []
    kept: list[Session] = []
    for start in range(0, len(due), PAGE):
        batch = due[start : start + PAGE]
        changes: list[Change] = [RemoveSession(session_id=one.id, at=at) for one in batch]
        for session, answer in zip(batch, await keeper.state.apply(changes), strict=True):
            (removed if isinstance(answer, Applied) else kept).append(session)
    return Cleanup(removed=removed, kept=kept)


def _is_due(session: Session, at: datetime, older_than: timedelta | None) -> bool:
    if older_than is None:
        return is_expired(session, at)
    is_over = session.status in SESSION_LIFECYCLE.terminal or is_expired(session, at)
    return is_over and session.last_active_at <= at - older_than


def _sessions(reader: StateReader) -> Iterator[Session]:
    """Every session that was not cleaned up, newest first."""
    return every_session(reader, SessionQuery(limit=PAGE))
