"""`/v1/sessions`: forking a session, choosing and naming one, handing one over, and cleaning up."""

from __future__ import annotations

from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Response

from nightherd.engine.operations import sessions as operations
from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.fork import ForkAt
from nightherd.engine.operations.requests import (
    ClearSession,
    Fork,
    ForkOf,
    Submit,
    UpdateSession,
)
from nightherd.engine.sessions.cleanup import Cleanup, find_due, remove_sessions
from nightherd.errors import NightherdError, UsageError
from nightherd.model.access.role import Role
from nightherd.model.ids import SessionId
from nightherd.model.sessions.session import Session
from nightherd.model.units import parse_duration
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import job_row, observe_job
from nightherd.views.jobs.rows import JobRow
from nightherd.views.sessions.sessions import (
    SessionCleanup,
    SessionRow,
    cleanup_document,
    find_session,
    get_session,
    session_row,
    up_to_now,
)
from nightherd.views.sessions.takeover import TakeoverDocument
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.jobs.jobs import IfHeld, Key, place_in_session
from nightherd.web.operations import FromSender, Sender, perform_for
from nightherd.web.requests import (
    REFUSE,
    WAIT,
    NewSessionCleanup,
    NewSessionFork,
    SessionUpdate,
)
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.takeover import hand_over

JOB = {"job": JobRow | None}
"""What stands beside a fork: the job that was started in it."""

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.post(
    "/{session}/fork",
    status_code=201,
    responses=answers("session", SessionRow, 404, 409, status=201, also=(200,), beside=JOB),
)
@needs(Role.OPERATOR)
async def fork(
    site: OnSite,
    sender: FromSender,
    session: str,
    body: NewSessionFork | None = None,
    idempotency_key: Key = None,
    if_held: IfHeld = WAIT,
) -> Response:
    """Fork a session at a message, an event or a checkpoint, by default at its end; with a `prompt` a job starts in it.

    Nothing is copied, and the session stays as it is. The same `Idempotency-Key` makes one fork and one job: asked
    again, they are the same, and 200.
    """
    asked = body or NewSessionFork.model_validate({})
    if asked.prompt is None and asked.agent is not None:
        raise UsageError("agent is for a fork with a prompt")
    found = await site.ask(lambda reader: find_session(reader, session))
    at = await place_in_session(
        site, asked.at_message, asked.at_seq, asked.at_checkpoint, asked.at_job
    )
    if asked.prompt is not None:
        held = if_held == REFUSE
        return await _fork_with_job(site, sender, found, at, asked, idempotency_key, held)
    request = Fork(session_id=found.id, at=at, name=asked.name, key=idempotency_key)
    forked = await operations.fork(request, site.context)
    status = 201 if forked.is_new else 200
    return await session_answer(site, forked.session.id, status, job=None)


async def _fork_with_job(
    site: ApiContext,
    sender: Sender,
    session: Session,
    at: ForkAt | None,
    asked: NewSessionFork,
    key: str | None,
    refuses_held: bool,
) -> Response:
    request = Submit(
        agent=agents_of(site.context).of_session(session, asked.agent).name,
        prompt=asked.prompt,
        session=ForkOf(session_id=session.id, at=at),
        refuses_held=refuses_held,
        dedupe_key=None if key is None else f"fork:{session.id}:{key}",
    )
    submitted = await perform_for(site, sender, request)
    job, fork_id = submitted.job, submitted.job.session_id
    if fork_id is None:
        raise NightherdError(f"job {job.id} has no session")
    made = await site.ask(lambda reader: get_session(reader, fork_id))
    # A name that was given after an earlier request stays.
    if asked.name is not None and (submitted.is_new or made.name is None):
        await operations.update_session(
            UpdateSession(session_id=fork_id, name=asked.name), site.context
        )
    now = site.now()
    seen = await site.ask(lambda reader: observe_job(reader, job, is_at_work, now))
    status = 201 if submitted.is_new else 200
    return await session_answer(site, fork_id, status, job=job_row(seen))


@router.post("/{session}/use", responses=answers("session", SessionRow, 404, 409))
@needs(Role.OPERATOR)
async def use(site: OnSite, session: str) -> Response:
    """Make a session the current one: the next job of its agent (and channel or schedule) continues in it."""
    found = await site.ask(lambda reader: find_session(reader, session))
    request = UpdateSession(session_id=found.id, is_current=True)
    await operations.update_session(request, site.context)
    return await session_answer(site, found.id)


@router.post(
    "/{session}/takeover", responses=answers("session_takeover", TakeoverDocument, 404, 409)
)
@needs(Role.OPERATOR)
async def take_over(site: OnSite, session: str) -> Response:
    """Hand a session over to a person: the command that continues it on this machine, in the agent's own program.

    What was said there since the last job is taken in as a job; asked again afterwards, the session is taken back
    with all of it. 409 while a job runs in it or will start by itself.
    """
    found = await site.ask(lambda reader: find_session(reader, session))
    prepare = partial(hand_over, found.id, site.state_dir, site.fleet(), site.environ)
    handed = await to_thread.run_sync(prepare)
    return document("session_takeover", handed.document, site.now())


@router.patch("/{session}", responses=answers("session", SessionRow, 404, 409))
@needs(Role.OPERATOR)
async def update(site: OnSite, session: str, body: SessionUpdate) -> Response:
    """Give a session another name of at most 100 characters, on one line; null or nothing removes it."""
    found = await site.ask(lambda reader: find_session(reader, session))
    request = UpdateSession(session_id=found.id, name=body.name or "")
    await operations.update_session(request, site.context)
    return await session_answer(site, found.id)


@router.delete("/{session}", responses=answers("session", SessionRow, 404, 409))
@needs(Role.ADMIN)
async def remove(site: OnSite, session: str) -> Response:
    """Clean up one session: no job continues in it, and lists leave it out. Its record stays; 409 while it is in use."""
    found = await site.ask(lambda reader: find_session(reader, session))
    await operations.clear_session(ClearSession(session_id=found.id), site.context)
    return await session_answer(site, found.id)


@router.post("/cleanup", responses=answers("session_cleanup", SessionCleanup))
@needs(Role.ADMIN)
async def clean_up(site: OnSite, body: NewSessionCleanup | None = None) -> Response:
    """Clean up expired sessions; with `older_than`, every ended one that was not used for so long. Records stay.

    With `dry_run` nothing changes: `removed` are those that would be cleaned up.
    """
    asked = body or NewSessionCleanup.model_validate({})
    age = None if asked.older_than is None else parse_duration(asked.older_than)
    now = site.now()
    due = await site.ask(lambda reader: find_due(reader, now, age))
    done = Cleanup(removed=due)
    if not asked.dry_run:
        done = await remove_sessions(due, site.context)
    data = cleanup_document(done.removed, done.kept, is_dry_run=asked.dry_run)
    return document("session_cleanup", data, now)


async def session_answer(
    site: ApiContext, session_id: SessionId, status: int = 200, **beside: Any
) -> Response:
    """The session as lists give it, as it is now."""
    now, journals = site.now(), site.context.journals

    def look(reader: StateReader) -> SessionRow:
        session = get_session(reader, session_id)
        return session_row(up_to_now(reader, journals, session, is_at_work, now))

    answer = document("session", await site.ask(look), now, status=status, **beside)
    if status == 201:
        answer.headers["location"] = f"/v1/sessions/{session_id}"
    return answer
