"""Sessions: fork one without a job, name it, make it its agent's current one, and clear it."""

from __future__ import annotations

from collections.abc import Sequence

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.operations.fork import ForkPoint, find_point, forked
from nightherd.engine.operations.new_job import apply_with_fresh_ids
from nightherd.engine.operations.requests import ClearSession, Fork, UpdateSession
from nightherd.engine.sessions.import_turns import ensure_turns_imported
from nightherd.errors import NightherdError, RefusedError, SessionNotFoundError
from nightherd.model.change import Applied, Change, Refused, Why
from nightherd.model.ids import RandomText, generate_session_id
from nightherd.model.sessions.changes import ForkSession, RemoveSession, RenameSession, UseSession
from nightherd.model.sessions.session import Session
from nightherd.next_step import Action, NextStep
from nightherd.ports import Clock, StateWriter
from nightherd.views.sessions import get_session

NAME_LIMIT = 100


async def fork(request: Fork, context: FleetContext) -> Session:
    """Record the branch and return it."""
    session = await ensure_turns_imported(get_session(context.reader, request.session_id), context)
    point = find_point(context.reader, context.journals, session, request.at)
    return await fork_session(
        session,
        point,
        state=context.state,
        clock=context.clock,
        random_text=context.random_text,
    )


async def fork_session(
    session: Session,
    point: ForkPoint,
    *,
    state: StateWriter,
    clock: Clock,
    random_text: RandomText,
) -> Session:
    """Record the fork and return it as it is on record. Either it is there, whole, or nothing is."""

    def make(_: ForkSession | None = None) -> ForkSession:
        session_id = generate_session_id(random_text)
        return ForkSession(session=forked(session, point, session_id=session_id, at=clock.now()))

    (answer,) = await apply_with_fresh_ids([make()], make, state.apply)
    match answer:
        case Applied(rows=(Session() as fork, *_)):
            return fork
        case Refused(message=message):
            raise RefusedError(message)
        case Applied():
            raise NightherdError("the fork was recorded and not returned")


async def update_session(request: UpdateSession, stores: Stores) -> Session:
    """Name the session, or make it the one that its agent's next job continues; return it as it is then."""
    session_id, changes = request.session_id, list[Change]()
    if request.name is not None:
        line = str(stores.secrets.mask(" ".join(request.name.split())))[:NAME_LIMIT]
        changes.append(RenameSession(session_id=session_id, name=line or None))
    if request.is_current:
        changes.append(UseSession(session_id=session_id))
    await _apply(changes, stores)
    return get_session(stores.reader, session_id)


async def clear_session(request: ClearSession, stores: Stores) -> None:
    """Take the session away from its agent; its record stays. `RefusedError` while a job is in it."""
    await _apply([RemoveSession(session_id=request.session_id, at=stores.clock.now())], stores)


async def _apply(changes: Sequence[Change], stores: Stores) -> None:
    for answer in await stores.state.apply(changes) if changes else ():
        if isinstance(answer, Refused):
            kind = SessionNotFoundError if answer.why is Why.MISSING else RefusedError
            raise kind(answer.message, next_step=NextStep(Action.LIST_SESSIONS))
