"""`/v1/retention`: which checkpoints and workspaces would be deleted, and deleting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Annotated, Any

import anyio
from anyio import to_thread
from fastapi import APIRouter, Query, Response
from pydantic import Field

from nightherd.engine.chat.retention import count_forgettable
from nightherd.engine.checkpoints.retention import Applied, ApplyRetention, apply_retention, plans
from nightherd.engine.sessions.directories import removable_directories
from nightherd.engine.workspaces.cleanup import removable
from nightherd.model.access.role import Role
from nightherd.model.chat.forgotten import NOTHING_FORGOTTEN, ForgottenChat
from nightherd.model.checkpoints.retention import JobPlan
from nightherd.model.text import counted
from nightherd.model.workspaces.workspace import Workspace
from nightherd.views.health.retention import (
    PlanRow,
    RemovedWorkspaceRow,
    RetentionRunRow,
    RetentionTotals,
    plan_row,
    retention_beside,
)
from nightherd.views.jobs.jobs import find_job_id
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.jobs.jobs import MOST
from nightherd.web.operations import FromPerson
from nightherd.web.requests import Body, Line
from nightherd.wiring.stores import (
    last_retention,
    load_persistence,
    open_chat_files,
    open_journals,
    open_reader,
    open_retention,
    session_directories,
)

FEW = 200
"""Jobs and workspaces in an answer, unless said otherwise."""
BESIDE: Mapping[str, Any] = {
    "is_dry_run": bool,
    "workspaces": list[RemovedWorkspaceRow],
    "failures": dict[str, str],
    "totals": RetentionTotals,
    "is_cut": bool,
    "last_run": RetentionRunRow | None,
}

router = APIRouter(prefix="/v1/retention", tags=["fleet"])

Limit = Annotated[int, Query(ge=1, le=MOST)]


class WhatToDelete(Body):
    """Which checkpoints are deleted."""

    job: Line | None = Field(None, description="Only those of this job, and no workspaces.")


@router.get("/plan", responses=answers("retention", list[PlanRow], 404, 409, beside=BESIDE))
@needs(Role.VIEWER)
async def show_plan(
    site: OnSite,
    job: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = FEW,
) -> Response:
    """What retention would delete now, and why; changes nothing. `totals` counts what the lists leave out."""

    def look() -> tuple[list[JobPlan], list[Workspace], ForgottenChat, int]:
        persistence, journals = load_persistence(site.state_dir), open_journals(site.state_dir)
        with closing(open_reader(site.state_dir)) as reader:
            job_id = find_job_id(reader, job) if job is not None else None
            planned = list(plans(reader, journals, persistence, site.now(), job_id))
            if job_id is not None:
                return planned, [], NOTHING_FORGOTTEN, 0
            directories = session_directories(site.state_dir)
            count = sum(1 for _ in removable_directories(reader, directories, site.now()))
            files, terms = open_chat_files(site.state_dir), persistence.retention.chat
            chat = count_forgettable(reader, terms, site.now(), files)
            return planned, list(removable(reader, site.now())), chat, count

    planned, workspaces, chat, count = await to_thread.run_sync(look, limiter=site.retention)
    return _answer(site, planned, workspaces, chat, count, {}, is_dry_run=True, limit=limit)


@router.post("/apply", responses=answers("retention", list[PlanRow], 404, 409, beside=BESIDE))
@needs(Role.ADMIN)
async def apply(
    site: OnSite, person: FromPerson, body: WhatToDelete | None = None, limit: Limit = FEW
) -> Response:
    """Delete what is planned now; checkpoints are archived first if the configuration says so. Jobs and journals stay."""
    job = None if body is None else body.job

    async def delete() -> Applied:
        async with open_retention(site.state_dir, site.fleet()) as room:
            job_id = find_job_id(room.reader, job) if job is not None else None
            return await apply_retention(ApplyRetention(job_id=job_id), room)

    # In a thread, with a loop of its own: reading journals delays nothing else.
    applied = await to_thread.run_sync(anyio.run, delete, limiter=site.retention)
    removed = applied.workspaces.removed
    count = sum(len(plan.going) for plan in applied.done)
    site.report(
        f"{person} applied retention: {counted(count, 'checkpoint')} of {counted(len(applied.done), 'job')}"
        f", {counted(len(removed), 'workspace')}, {counted(applied.chat.texts, 'text')} and"
        f" {counted(applied.chat.files, 'file')} of chat deleted"
    )
    failures = {**applied.failures, **applied.workspaces.failures}
    directories, chat = applied.session_directories, applied.chat
    return _answer(
        site, applied.done, removed, chat, directories, failures, is_dry_run=False, limit=limit
    )


def _answer(
    site: ApiContext,
    done: Sequence[JobPlan],
    workspaces: Sequence[Workspace],
    chat: ForgottenChat,
    directories: int,
    failures: Mapping[str, str],
    *,
    is_dry_run: bool,
    limit: int,
) -> Response:
    beside = retention_beside(
        done,
        workspaces,
        chat,
        is_dry_run=is_dry_run,
        session_directories=directories,
        limit=limit,
        failures=failures,
        last_run=last_retention(site.state_dir),
    )
    rows = [plan_row(plan) for plan in done[:limit]]
    return document("retention", rows, site.now(), **beside)
