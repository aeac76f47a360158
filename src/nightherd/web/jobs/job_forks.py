"""`/v1/jobs/JOB/fork`: the work of a job done otherwise, from an earlier message on."""

from __future__ import annotations

from fastapi import APIRouter, Response

from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.jobs import fork_of_job
from nightherd.engine.operations.requests import Submit
from nightherd.model.access.role import Role
from nightherd.views.jobs.jobs import find_job_id, get_job
from nightherd.views.jobs.rows import JobRow
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import answers
from nightherd.web.jobs.jobs import IfHeld, Key, job_answer, place_in_session
from nightherd.web.operations import FromSender, perform_for
from nightherd.web.requests import REFUSE, WAIT, NewJobFork

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post(
    "/{job}/fork",
    status_code=201,
    responses=answers("job", JobRow, 404, 409, status=201, also=(200,)),
)
@needs(Role.OPERATOR)
async def fork(
    site: OnSite,
    sender: FromSender,
    job: str,
    body: NewJobFork | None = None,
    idempotency_key: Key = None,
    if_held: IfHeld = WAIT,
) -> Response:
    """A new job in a fork of the job's session: at a message, an event or a checkpoint, by default at the job's end.

    The same `Idempotency-Key` makes one: asked again, it is the same job, and 200.
    """
    asked = body or NewJobFork.model_validate({})
    found = await site.ask(lambda reader: get_job(reader, find_job_id(reader, job)))
    is_in_job = asked.at_seq is not None or asked.at_checkpoint is not None
    at = await place_in_session(
        site,
        asked.at_message,
        asked.at_seq,
        asked.at_checkpoint,
        found.id if is_in_job else None,
    )
    request = Submit(
        agent=agents_of(site.context).of_job(found.id, site.context.reader).name,
        prompt=asked.prompt,
        inputs=asked.inputs,
        session=fork_of_job(found, at),
        refuses_held=if_held == REFUSE,
        dedupe_key=None if idempotency_key is None else f"fork:{found.id}:{idempotency_key}",
    )
    submitted = await perform_for(site, sender, request)
    return await job_answer(submitted.job, site, 201 if submitted.is_new else 200)
