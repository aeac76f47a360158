"""`/v1/jobs/JOB/outline`: a whole job in a document of bounded size."""

from __future__ import annotations

from fastapi import APIRouter, Response

from nightherd.model.access.role import Role
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import find_job_id
from nightherd.views.jobs.outlines import JobOutline, outline_of_job
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import answers, document

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get("/{job}/outline", responses=answers("job_outline", JobOutline, 404, 409))
@needs(Role.VIEWER)
async def show_outline(site: OnSite, job: str) -> Response:
    """The outline of a job: its segments, errors, executions, gaps with their reasons, children and checkpoints.

    Every list has a maximum, and `counts` says how many there are in all: a job of 100,000 events is as quick to
    read as one of 1,000.
    """

    def look(reader: StateReader) -> JobOutline:
        return outline_of_job(reader, site.outlines, find_job_id(reader, job))

    return document("job_outline", await site.ask(look), site.context.clock.now())
