"""`/v1/jobs/bulk`: cancel or retry many jobs at once."""

from __future__ import annotations

from fastapi import APIRouter, Response
from msgspec.structs import replace

from nightherd.engine.operations.bulk import Bulk, perform_bulk, plan_bulk, select_jobs
from nightherd.engine.operations.requests import Cancel, Retry
from nightherd.errors import UsageError
from nightherd.model.access.role import Role
from nightherd.model.ids import JobId
from nightherd.model.jobs.bulk import BulkVerb
from nightherd.model.jobs.filter import parse_job_filter
from nightherd.model.jobs.job import Job
from nightherd.views.jobs.bulk import BulkDocument, bulk_document
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.jobs.jobs import IfHeld, Key
from nightherd.web.operations import FromSender, perform_for
from nightherd.web.problem import request_for
from nightherd.web.requests import REFUSE, WAIT, NewBulk
from nightherd.wiring.machine import is_at_work

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post("/bulk", responses=answers("bulk", BulkDocument))
@needs(Role.OPERATOR)
async def bulk(
    site: OnSite,
    sender: FromSender,
    body: NewBulk,
    idempotency_key: Key = None,
    if_held: IfHeld = WAIT,
) -> Response:
    """Cancel or retry up to 500 jobs: those with the ids in `jobs`, or those that the filter `q` fits.

    The answer says of each job whether it was `done` or `refused`, and why; what is refused for one keeps none of the
    others. With `dry_run` nothing changes. By a filter, `cancel` takes jobs that have not ended, and `retry` failed
    ones unless the filter names statuses. The same `Idempotency-Key` retries each job once, also after a crash.
    """
    verb = BulkVerb(body.verb)
    request = Bulk(
        verb=verb,
        job_ids=await _job_ids(site, verb, body, idempotency_key),
        refuses_held=if_held == REFUSE,
        key=idempotency_key,
    )
    context = site.context

    async def carry_out(one: Cancel | Retry) -> Job:
        return await perform_for(site, sender, one)

    if body.dry_run:
        outcomes = await site.ask(
            lambda reader: plan_bulk(request, replace(context, reader=reader))
        )
    else:
        outcomes = await perform_bulk(request, carry_out, context.reader)
    now = site.now()
    data = await site.ask(
        lambda reader: bulk_document(
            reader, verb, outcomes, is_at_work, now, is_dry_run=body.dry_run, spell=request_for
        )
    )
    return document("bulk", data, now)


async def _job_ids(site: ApiContext, verb: BulkVerb, body: NewBulk, key: str | None) -> list[JobId]:
    if (body.jobs is None) == (body.q is None):
        raise UsageError("give either jobs or q")
    if body.jobs is not None:
        return [JobId(job) for job in body.jobs]
    filter = parse_job_filter(body.q or "", site.now())
    return await site.ask(lambda reader: select_jobs(reader, verb, filter, key))
