"""`/v1/jobs/JOB/config`: what an execution of a job was set to do its work with, and what differs now."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from nightherd.engine.jobs.settings import settings_now
from nightherd.engine.workflows.run_context import RunLookup
from nightherd.model.access.role import Role
from nightherd.model.jobs.options import NO_OPTIONS
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import find_job_id, get_job
from nightherd.views.jobs.settings import JobConfigDocument, job_config
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import answers, document

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

LARGEST = 2**31


@router.get("/{job}/config", responses=answers("job_config", JobConfigDocument, 404, 409))
@needs(Role.VIEWER)
async def show_job_config(
    site: OnSite, job: str, epoch: Annotated[int | None, Query(ge=1, le=LARGEST)] = None
) -> Response:
    """The settings of the job's last execution, or of the execution `epoch`: each with its origin and layer.

    `change` says of each value whether an execution of the job would have another one now. A job from before
    nightherd recorded settings has `is_recorded: false`.
    """
    context = site.context

    def look(reader: StateReader) -> JobConfigDocument:
        found = get_job(reader, find_job_id(reader, job))
        texts = reader.find_texts(found.id)
        agent = context.agents.get(found.agent)
        options = NO_OPTIONS if texts is None else texts.overrides
        runs = RunLookup(reader=reader, agents=context.agents, home=context.home)
        mask = context.secrets.mask
        now = None if agent is None else settings_now(found, agent, options, runs, mask)
        return job_config(context.journals, found, now, epoch)

    return document("job_config", await site.ask(look), context.clock.now())
