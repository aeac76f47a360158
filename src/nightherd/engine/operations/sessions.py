"""Sessions: fork one without a job, name it, make it its agent's current one, and clear it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.imports.context import hashed_text
from nightherd.engine.operations.fork import ForkPoint, find_point, forked
from nightherd.engine.operations.new_job import ID_TRIES, apply_with_fresh_ids
from nightherd.engine.operations.requests import ClearSession, Fork, UpdateSession
from nightherd.engine.sessions.import_turns import ensure_turns_imported
from nightherd.errors import NightherdError, RefusedError, SessionNotFoundError
from nightherd.model.change import Answer, Applied, Change, Refused, Why
from nightherd.model.ids import RandomText, SessionId, generate_session_id
from nightherd.model.sessions.changes import ForkSession, RemoveSession, RenameSession, UseSession
from nightherd.model.sessions.session import Session
from nightherd.next_step import Action, NextStep
from nightherd.ports import Clock, StateWriter
from nightherd.views.sessions.sessions import get_session

NAME_LIMIT = 100


class Forked(msgspec.Struct, frozen=True, kw_only=True):
    """A branch, and whether this request made it; an earlier one with the same key may have."""

    session: Session
    is_new: bool = True


async def fork(request: Fork, context: FleetContext) -> Forked:
    """Record the branch and return it; one for each key."""
    session = await ensure_turns_imported(get_session(context.reader, request.session_id), context)
    point = find_point(context.reader, context.journals, session, request.at)
    name = None if request.name is None else _line(request.name, context)

    if request.key is not None:
        return await _fork_once(request, session, point, name, context)
    made = await fork_session(
        session,
        point,
        state=context.state,
        clock=context.clock,
        random_text=context.random_text,
        name=name,
    )
    return Forked(session=made)


async def fork_session(
    session: Session,
    point: ForkPoint,
    *,
    state: StateWriter,
    clock: Clock,
    random_text: RandomText,
    name: str | None = None,
) -> Session:
    """Record the fork and return it as it is on record. Either it is there, whole, or nothing is."""

    def make(_: ForkSession | None = None) -> ForkSession:
        return _change(session, point, generate_session_id(random_text), clock, name)

    (answer,) = await apply_with_fresh_ids([make()], make, state.apply)
    return _session_of(answer)


def _change(
    session: Session, point: ForkPoint, session_id: SessionId, clock: Clock, name: str | None
) -> ForkSession:
    made = forked(session, point, session_id=session_id, at=clock.now())
    return ForkSession(session=replace(made, name=name))


async def _fork_once(
    request: Fork, session: Session, point: ForkPoint, name: str | None, context: FleetContext
) -> Forked:
    """Record the branch under an id that follows from its key, so that a repeated request finds it."""
    for attempt in range(ID_TRIES):
        seed = f"fork\n{session.id}\n{request.key}\n{attempt}"
        session_id = generate_session_id(hashed_text(seed))
        known = context.reader.find_session(session_id)
        if known is None:
            change = _change(session, point, session_id, context.clock, name)
            (answer,) = await context.state.apply([change])
            if not (isinstance(answer, Refused) and answer.why is Why.ID_TAKEN):
                return Forked(session=_session_of(answer))
            known = get_session(context.reader, session_id)
        if known.parent_session_id == session.id:
            _check_same_place(known, request, point)
            return Forked(session=known, is_new=False)
    raise NightherdError(f"no free id after {ID_TRIES} tries")


def _check_same_place(known: Session, request: Fork, point: ForkPoint) -> None:
    """A key that was used for another place is a mistake of the caller; the end of a session may have moved since."""
    if request.at is not None and known.base_messages != point.messages:
        raise RefusedError(
            f"this idempotency key was used for another fork, session {known.id}",
            hint="use a new key for a new fork",
        )


def _session_of(answer: Answer) -> Session:
    match answer:
        case Applied(rows=(Session() as fork, *_)):
            return fork
        case Refused(message=message):
            raise RefusedError(message)
        case Applied():
            raise NightherdError("the fork was recorded and not returned")


def _line(name: str, stores: Stores) -> str | None:
    """Return a name as it is recorded; None for an empty one."""
    return str(stores.secrets.mask(" ".join(name.split())))[:NAME_LIMIT] or None


async def update_session(request: UpdateSession, stores: Stores) -> Session:
    """Name the session, or make it the one that its agent's next job continues; return it as it is then."""
    session_id, changes = request.session_id, list[Change]()
    if request.name is not None:
        changes.append(RenameSession(session_id=session_id, name=_line(request.name, stores)))
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
