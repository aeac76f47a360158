"""`/v1/sessions`: conversations that jobs share."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from nightherd.engine.operations.requests import ResumeSession, with_key
from nightherd.model.access.role import Role
from nightherd.model.sessions.filter import parse_session_filter
from nightherd.model.sessions.session import SessionMode, SessionQuery, SessionStatus
from nightherd.views.jobs.rows import JobRow
from nightherd.views.sessions.sessions import (
    SessionDocument,
    SessionRow,
    find_session,
    list_page,
    session_document,
    session_row,
    show_session,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import NEXT, answers, document
from nightherd.web.jobs.jobs import Filter, IfHeld, Key, job_answer
from nightherd.web.operations import FromSender, perform_for
from nightherd.web.requests import REFUSE, WAIT, SessionResumption
from nightherd.wiring.machine import is_at_work

MOST = 200
LARGEST = 2**53

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.get("", responses=answers("sessions", list[SessionRow], beside=NEXT))
@needs(Role.VIEWER)
async def list_sessions(
    site: OnSite,
    q: Filter = None,
    agent: Annotated[str | None, Query(max_length=200)] = None,
    status: SessionStatus | None = None,
    mode: SessionMode | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 20,
    before: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """The newest sessions, newest first; `before` is the `next_before` of the page before.

    `q` is a filter as that of jobs, with the keys agent, status, mode, cost, since, until, schedule and channel.
    """
    now = site.context.clock.now()
    filter = None if q is None else parse_session_filter(q, now)
    query = SessionQuery(
        agent=agent, status=status, mode=mode, filter=filter, before=before, limit=limit
    )
    journals = site.context.journals
    page = await site.ask(lambda reader: list_page(reader, journals, query, is_at_work, now))
    rows = [session_row(session) for session in page.sessions]
    return document("sessions", rows, now, next_before=page.next_before)


@router.get("/{session}", responses=answers("session", SessionDocument, 404, 409))
@needs(Role.VIEWER)
async def show(site: OnSite, session: str) -> Response:
    """One session, its jobs and its branches. Our id or the runtime's, a unique prefix of one, or `@last`."""
    now = site.context.clock.now()
    journals = site.context.journals
    view = await site.ask(
        lambda reader: show_session(
            reader, journals, find_session(reader, session), is_at_work, now
        )
    )
    return document("session", session_document(view), now)


@router.post("/{session}/resume", responses=answers("job", JobRow, 404, 409))
@needs(Role.OPERATOR)
async def resume(
    site: OnSite,
    sender: FromSender,
    session: str,
    body: SessionResumption | None = None,
    idempotency_key: Key = None,
    if_held: IfHeld = WAIT,
) -> Response:
    """Go on in a session: with the job that was cut off in it, else with a new one; in a branch when it is over.

    Without a prompt there is no new one beside an open job, or after a completed one (409). The same
    `Idempotency-Key` makes one new job.
    """
    said = body or SessionResumption(agent=None, prompt=None)
    found = await site.ask(lambda reader: find_session(reader, session))
    request = ResumeSession(
        session_id=found.id,
        agent=said.agent,
        prompt=said.prompt,
        refuses_held=if_held == REFUSE,
    )
    resumed = await perform_for(site, sender, with_key(request, idempotency_key))
    return await job_answer(resumed, site)
