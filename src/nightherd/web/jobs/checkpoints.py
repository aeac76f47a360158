"""`/v1/jobs/JOB/checkpoints`: the places at which a job can be resumed or forked."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from nightherd.model.access.role import Role
from nightherd.ports import StateReader
from nightherd.views.jobs.checkpoints import (
    CheckpointDocument,
    CheckpointPage,
    CheckpointRow,
    TakenRow,
    checkpoint_document,
    checkpoint_page,
    checkpoint_row,
    find_checkpoint,
    taken_away,
    taken_row,
)
from nightherd.views.jobs.jobs import find_job_id
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import NEXT, answers, document

LARGEST = 2**53
BESIDE = {**NEXT, "total": int, "removed": int, "removed_at": str | None}

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get(
    "/{job}/checkpoints",
    responses=answers("checkpoints", list[CheckpointRow], 404, 409, beside=BESIDE),
)
@needs(Role.VIEWER)
async def list_checkpoints(
    site: OnSite,
    job: str,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """A job's checkpoints, newest first; `before` is the `next_before` of the page before.

    `total` counts all that there are, `removed` those that retention has deleted.
    """
    journals = site.context.journals

    def look(reader: StateReader) -> tuple[CheckpointPage, TakenRow]:
        job_id = find_job_id(reader, job)
        page = checkpoint_page(reader, journals, job_id, limit=limit, before=before)
        return page, taken_row(taken_away(reader, journals, job_id))

    page, gone = await site.ask(look)
    rows = [checkpoint_row(one) for one in page.checkpoints]
    return document(
        "checkpoints", rows, site.now(), next_before=page.next_before, total=page.total, **gone
    )


@router.get(
    "/{job}/checkpoints/{number}", responses=answers("checkpoint", CheckpointDocument, 404, 409)
)
@needs(Role.VIEWER)
async def show(site: OnSite, job: str, number: Annotated[int, Path(ge=1, le=LARGEST)]) -> Response:
    """One checkpoint with its header. Resume the job there, or fork its session there, with `at_checkpoint`."""
    journals = site.context.journals
    found = await site.ask(
        lambda reader: find_checkpoint(reader, journals, find_job_id(reader, job), number)
    )
    return document("checkpoint", checkpoint_document(found), site.now())
