"""`/v1/jobs/JOB/apply`, `/merge` and `/push`: bring the changes of a job home. Only a person may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Response

from nightherd.engine.contexts import Stores
from nightherd.engine.operations.landing import (
    ApplyJob,
    JobLanding,
    MergeJob,
    PushJob,
    apply_job,
    merge_job,
    push_job,
)
from nightherd.errors import ForbiddenError
from nightherd.model.access.role import Role
from nightherd.model.inbox.token import WEB_PERSON
from nightherd.ports import Landing
from nightherd.views.jobs.jobs import find_job_id, get_job
from nightherd.views.workspaces.landing import LandingDocument, landing_document
from nightherd.web.access.caller import Caller, FromCaller, needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.jobs.jobs import find_job
from nightherd.web.operations import FromSender, Sender
from nightherd.web.requests import NewApply, NewMerge, NewPush

ANSWERS = answers("landing", LandingDocument, 404, 409)
Operation = Callable[[Stores, Landing], Awaitable[JobLanding]]

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post("/{job}/apply", responses=ANSWERS)
@needs(Role.ADMIN)
async def apply(
    site: OnSite, sender: FromSender, caller: FromCaller, job: str, body: NewApply | None = None
) -> Response:
    """Apply a job's changes to the files in its agent's directory, and commit nothing.

    All files change, or none: with `conflicts` in the answer nothing was changed.
    """
    await _require_person(sender, caller, "apply changes to files")
    asked = body or NewApply.model_validate({})
    request = ApplyJob(
        job_id=await find_job(site, job),
        is_only_this_job=asked.only_this_job,
        is_dry_run=asked.dry_run,
    )
    return await _land(
        site, lambda stores, landing: apply_job(request, stores, landing), asked.dry_run
    )


@router.post("/{job}/merge", responses=ANSWERS)
@needs(Role.ADMIN)
async def merge(
    site: OnSite, sender: FromSender, caller: FromCaller, job: str, body: NewMerge | None = None
) -> Response:
    """Merge a job's changes into a branch; a directory that has it checked out is updated.

    With `conflicts` in the answer nothing was changed.
    """
    await _require_person(sender, caller, "merge changes")
    asked = body or NewMerge.model_validate({})
    request = MergeJob(
        job_id=await find_job(site, job),
        into=asked.into,
        message=asked.message,
        is_fast_forward=asked.fast_forward,
        is_dry_run=asked.dry_run,
    )
    return await _land(
        site, lambda stores, landing: merge_job(request, stores, landing), asked.dry_run
    )


@router.post("/{job}/push", responses=ANSWERS)
@needs(Role.ADMIN)
async def push(
    site: OnSite, sender: FromSender, caller: FromCaller, job: str, body: NewPush | None = None
) -> Response:
    """Push a job's changes to a remote, as the branch of its workspace, with the credentials of the daemon's user."""
    await _require_person(sender, caller, "push changes")
    asked = body or NewPush.model_validate({})
    found = await site.ask(lambda reader: get_job(reader, find_job_id(reader, job)))
    agent = site.fleet().agents.get(found.agent)
    login = None if agent is None else agent.workspace.clone
    request = PushJob(
        job_id=found.id,
        remote=asked.remote,
        message=asked.message,
        is_forced=asked.force,
        is_dry_run=asked.dry_run,
    )
    return await _land(
        site, lambda stores, landing: push_job(request, stores, landing, login), asked.dry_run
    )


async def _require_person(sender: Sender, caller: Caller, what: str) -> None:
    """Refuse agents: their own processes, and whoever has only the token that they can read."""
    await sender.must_be_person(what)
    if caller.name == WEB_PERSON:
        raise ForbiddenError(
            f"agents can read the web token; to {what}, log in from a shell of your own or use a named token"
        )


async def _land(site: ApiContext, operation: Operation, is_dry_run: bool) -> Response:
    context = site.context
    done = await operation(context, site.landing)
    described = landing_document(
        done.job.id,
        done.workspace.id,
        done.how,
        done.result,
        is_dry_run=is_dry_run,
        finished=done.finished,
    )
    return document("landing", context.secrets.mask(described), site.now())
