"""`/v1/jobs`: submitting, listing, showing, cancelling and following jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response
from msgspec.structs import replace

from nightherd.engine.limits.guard import limits_for
from nightherd.engine.operations.fork import AtCheckpoint, AtEvent, AtLastTurn, AtMessage, ForkAt
from nightherd.engine.operations.requests import (
    Cancel,
    ForkOf,
    InSession,
    OwnSession,
    Resume,
    Retry,
    Submit,
    with_key,
)
from nightherd.errors import UsageError
from nightherd.model.access.role import Role
from nightherd.model.ids import JobId
from nightherd.model.jobs.filter import parse_job_filter
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.limits.limits import kept_limits
from nightherd.model.units import parse_duration
from nightherd.ports import StateReader
from nightherd.views.costs.limits import limits_of_job
from nightherd.views.jobs.checkpoints import latest_known, with_checkpoint_totals
from nightherd.views.jobs.document import JobDocument, job_document, show_job
from nightherd.views.jobs.jobs import find_job_id, job_row, list_page, observe_job, observe_jobs
from nightherd.views.jobs.rows import JobRow
from nightherd.views.sessions.sessions import find_session
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import (
    NEXT,
    answers,
    document,
)
from nightherd.web.operations import FromSender, perform_for
from nightherd.web.requests import REFUSE, WAIT, NewJob, Resumption
from nightherd.wiring.machine import is_at_work

MOST = 1_000
LARGEST = 2**53

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

Filter = Annotated[str | None, Query(max_length=2_000)]
"""A filter as people write it."""
Key = Annotated[str | None, Header(min_length=1, max_length=255)]
IfHeld = Annotated[Literal["wait", "refuse"], Header()]
"""Whether a job is queued or refused where a suspended job holds its session and waits for a person."""


@router.get("", responses=answers("jobs", list[JobRow], beside=NEXT))
@needs(Role.VIEWER)
async def list_jobs(
    site: OnSite,
    q: Filter = None,
    agent: Annotated[str | None, Query(max_length=200)] = None,
    status: JobStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 20,
    before: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """The newest jobs, newest first; `before` is the `next_before` of the page before.

    `q` is a filter such as `agent:coder status:failed,cancelled cost:>1 since:2d words`, with the keys agent, status,
    cost, since, until, schedule, session, trigger and run. An error in it is 400 and names its column.
    """
    now = site.context.clock.now()
    filter = None if q is None else parse_job_filter(q, now)
    query = JobQuery(agent=agent, status=status, filter=filter, before=before, limit=limit)

    def look(reader: StateReader) -> tuple[list[JobRow], int | None]:
        page = list_page(reader, query)
        jobs = observe_jobs(reader, page.jobs, is_at_work, now)
        return [job_row(job) for job in jobs], page.next_before

    rows, next_before = await site.ask(look)
    return document("jobs", rows, now, next_before=next_before)


@router.post(
    "", status_code=201, responses=answers("job", JobRow, 404, 409, status=201, also=(200,))
)
@needs(Role.OPERATOR)
async def submit_job(
    site: OnSite,
    sender: FromSender,
    body: NewJob,
    idempotency_key: Key = None,
    if_held: IfHeld = WAIT,
) -> Response:
    """Ask an agent for a piece of work; answered once nothing can lose it.

    The same `Idempotency-Key` never makes a second job: asked again, it is the same job, and 200. Jobs of one
    session run in order: behind a suspended job this one waits, or with `If-Held: refuse` is refused where that
    one waits for a person. `branch` runs it in a branch of the session, at the last complete turn.
    """
    request = Submit(
        agent=body.agent,
        prompt=body.prompt,
        inputs=body.inputs,
        options=_options(body),
        session=await _session(body, site),
        priority=body.priority,
        refuses_held=if_held == REFUSE,
    )
    submitted = await perform_for(site, sender, with_key(request, idempotency_key))
    return await job_answer(submitted.job, site, 201 if submitted.is_new else 200)


async def _session(body: NewJob, site: ApiContext) -> OwnSession | InSession | ForkOf:
    """The session that the job is in."""
    at = await _place(body, site)
    if body.resume is None and body.fork is None:
        return OwnSession(mode=body.session, channel=body.channel, is_branch=body.branch)
    if sum(one is not None for one in (body.resume, body.fork, body.session, body.channel)) > 1:
        raise UsageError("resume, fork, session and channel all choose a session; use only one")
    named = body.resume if body.resume is not None else body.fork or ""
    session = await site.ask(lambda reader: find_session(reader, named))
    if body.fork is not None or body.branch:
        return ForkOf(session_id=session.id, at=at)
    return InSession(session_id=session.id)


async def _place(body: NewJob, site: ApiContext) -> ForkAt | None:
    """Where the branch begins; None at the session's end."""
    if body.branch and body.fork is not None:
        raise UsageError("fork and branch both fork the session; use only one")
    if body.branch and body.resume is not None:
        return AtLastTurn()
    places = (body.at_message, body.at_seq, body.at_checkpoint)
    if body.fork is None and (body.at_job is not None or any(one is not None for one in places)):
        raise UsageError("at_message, at_seq, at_checkpoint and at_job are for a fork")
    return await place_in_session(site, *places, body.at_job)


async def place_in_session(
    site: ApiContext,
    at_message: int | None,
    at_seq: int | None,
    at_checkpoint: int | None,
    at_job: str | None,
) -> ForkAt | None:
    """Return the one place of a session that was named; None for its end."""
    if sum(place is not None for place in (at_message, at_seq, at_checkpoint)) > 1:
        raise UsageError("at_message, at_seq and at_checkpoint cannot be used together")
    if at_job is not None and at_seq is None and at_checkpoint is None:
        raise UsageError(
            "at_job says whose event or checkpoint it is; give at_seq or at_checkpoint"
        )
    if at_message is not None:
        return AtMessage(number=at_message)
    job_id = None if at_job is None else await find_job(site, at_job)
    if at_seq is not None:
        return AtEvent(seq=at_seq, job_id=job_id)
    if at_checkpoint is not None:
        return AtCheckpoint(number=at_checkpoint, job_id=job_id)
    return None


@router.get("/{job}", responses=answers("job", JobDocument, 404, 409))
@needs(Role.VIEWER)
async def show(site: OnSite, job: str) -> Response:
    """One job with its prompt, result, executions and limits. An id, a unique prefix of one, or `@last`."""
    shop, now = site.context, site.context.clock.now()

    def look(reader: StateReader) -> JobDocument:
        view = show_job(reader, shop.journals, find_job_id(reader, job), now, is_at_work)
        last = latest_known(reader, shop.journals, view.job.id)
        view = replace(view, job=with_checkpoint_totals(view.job, last))
        given = view.texts.overrides if view.texts is not None else NO_OPTIONS
        agent = shop.agents.get(view.job.agent)
        limits = limits_of_job(
            view.job,
            last,
            reader.used_below(view.job.id),
            given=given.limits,
            declared=limits_for(view.job, given, agent) if agent is not None else None,
        )
        return job_document(view, limits, now)

    return document("job", await site.ask(look), now)


@router.post("/{job}/cancel", responses=answers("job", JobRow, 404, 409))
@needs(Role.OPERATOR)
async def cancel(site: OnSite, sender: FromSender, job: str) -> Response:
    """End a job. One that waits ends at once; one that runs is stopped by its worker."""
    request = Cancel(job_id=await find_job(site, job))
    return await job_answer(await perform_for(site, sender, request), site)


@router.post(
    "/{job}/retry", status_code=201, responses=answers("job", JobRow, 404, 409, status=201)
)
@needs(Role.OPERATOR)
async def retry(
    site: OnSite,
    sender: FromSender,
    job: str,
    idempotency_key: Key = None,
    if_held: IfHeld = WAIT,
) -> Response:
    """Ask for the same work once more, as a new job; the same `Idempotency-Key` makes one."""
    request = Retry(job_id=await find_job(site, job), refuses_held=if_held == REFUSE)
    again = await perform_for(site, sender, with_key(request, idempotency_key))
    return await job_answer(again, site, 201)


@router.post("/{job}/resume", responses=answers("job", JobRow, 404, 409))
@needs(Role.OPERATOR)
async def resume(
    site: OnSite,
    sender: FromSender,
    job: str,
    body: Resumption | None = None,
    idempotency_key: Key = None,
    if_held: IfHeld = WAIT,
) -> Response:
    """Go on with a job: the same one when it was suspended or interrupted, else a new one in its session.

    `limits` are what it may use from now on. From `at_checkpoint` it is a new job in a branch, unless the job
    waits right there. The same `Idempotency-Key` acts once, also when the job has ended since.
    """
    said = body or Resumption(prompt=None, limits={}, at_checkpoint=None)
    request = Resume(
        job_id=await find_job(site, job),
        prompt=said.prompt,
        limits=kept_limits(said.limits),
        at_checkpoint=said.at_checkpoint,
        refuses_held=if_held == REFUSE,
    )
    resumed = await perform_for(site, sender, with_key(request, idempotency_key))
    return await job_answer(resumed, site)


async def job_answer(job: Job, site: ApiContext, status: int = 200) -> Response:
    """The job as lists give it."""
    now = site.context.clock.now()
    seen = await site.ask(lambda reader: observe_job(reader, job, is_at_work, now))
    answer = document("job", job_row(seen), now, status=status)
    if status == 201:
        answer.headers["location"] = f"/v1/jobs/{job.id}"
    return answer


async def find_job(site: ApiContext, reference: str) -> JobId:
    """Return the id of the one job that is meant."""
    return await site.ask(lambda reader: find_job_id(reader, reference))


def _options(body: NewJob) -> JobOptions:
    timeout = None if body.job_timeout is None else parse_duration(body.job_timeout)
    return JobOptions(
        model=body.model,
        max_turns=body.max_turns,
        job_timeout=timeout,
        limits=kept_limits(body.limits) or None,
    )
