"""Small changes to a session: its name, whether its agent continues there, and clearing it."""

from __future__ import annotations

from collections.abc import Sequence

from nightherd.engine.contexts import Stores
from nightherd.errors import RefusedError, SessionNotFoundError
from nightherd.model.change import Change, Refused, Why
from nightherd.model.ids import SessionId
from nightherd.model.sessions.changes import RemoveSession, RenameSession, UseSession
from nightherd.model.sessions.session import Session
from nightherd.next_step import Action, NextStep
from nightherd.views.sessions import get_session

NAME_LIMIT = 100


async def update_session(
    session_id: SessionId, stores: Stores, *, name: str | None = None, is_current: bool = False
) -> Session:
    """Name the session, or make it the one that its agent's next job continues; return it as it is then.

    A name is one line of at most 100 characters without secrets; an empty one removes the name.
    """
    changes: list[Change] = []
    if name is not None:
        line = str(stores.secrets.mask(" ".join(name.split())))[:NAME_LIMIT]
        changes.append(RenameSession(session_id=session_id, name=line or None))
    if is_current:
        changes.append(UseSession(session_id=session_id))
    await _apply(changes, stores)
    return get_session(stores.reader, session_id)


async def clear_session(session_id: SessionId, stores: Stores) -> None:
    """Take the session away from its agent; its record stays. `RefusedError` while a job is in it."""
    await _apply([RemoveSession(session_id=session_id, at=stores.clock.now())], stores)


async def _apply(changes: Sequence[Change], stores: Stores) -> None:
    for answer in await stores.state.apply(changes) if changes else ():
        if isinstance(answer, Refused):
            kind = SessionNotFoundError if answer.why is Why.MISSING else RefusedError
            raise kind(answer.message, next_step=NextStep(Action.LIST_SESSIONS))
