"""`/v1/workspaces`: the directories that jobs work in; and `/v1/jobs/{job}/diff`: what a job changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from nightherd.engine.workspaces.cleanup import CleanupContext, clean, policies_of
from nightherd.errors import RefusedError, UsageError, WorkspaceError
from nightherd.model.access.role import Role
from nightherd.model.workspaces.workspace import Workspace, WorkspaceQuery
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import find_job_id
from nightherd.views.workspaces.snapshots import ChangesDocument, changes_document, job_changes
from nightherd.views.workspaces.workspaces import (
    WorkspaceDocument,
    WorkspaceRow,
    find_workspace,
    list_page,
    show_workspace,
    total_size,
    workspace_document,
    workspace_row,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import NEXT, answers, document
from nightherd.web.operations import FromSender

MOST = 1_000
LARGEST = 2**53
LARGEST_PATCH = 8 * 1024 * 1024
"""Bytes of changed files above which an answer has no patch: it is made in memory."""
TOTAL = {"total_size_bytes": int}

router = APIRouter(tags=["workspaces"])


class JobDiff(ChangesDocument):
    """What a job changed; `is_patch_left_out` when the patch is too large for an answer."""

    is_patch_left_out: bool


@router.get(
    "/v1/workspaces", responses=answers("workspaces", list[WorkspaceRow], beside={**NEXT, **TOTAL})
)
@needs(Role.VIEWER)
async def list_workspaces(
    site: OnSite,
    agent: Annotated[str | None, Query(max_length=200)] = None,
    removed: bool = False,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 20,
    before: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """The newest workspaces, newest first; with `removed`, also those that were removed."""
    query = WorkspaceQuery(agent=agent, has_removed=removed, before=before, limit=limit)
    now = site.context.clock.now()

    def look(reader: StateReader) -> tuple[list[WorkspaceRow], int | None, int]:
        page = list_page(reader, query, now)
        rows = [workspace_row(view) for view in page.workspaces]
        return rows, page.next_before, total_size(reader, agent)

    rows, next_before, size = await site.ask(look)
    return document("workspaces", rows, now, next_before=next_before, total_size_bytes=size)


@router.get(
    "/v1/workspaces/{workspace}", responses=answers("workspace", WorkspaceDocument, 404, 409)
)
@needs(Role.VIEWER)
async def show(site: OnSite, workspace: str) -> Response:
    """One workspace: where it is, what changed in it, what keeps it. An id, a unique prefix, or a job or session."""
    return await _answer(site, workspace)


@router.delete(
    "/v1/workspaces/{workspace}", responses=answers("workspace", WorkspaceDocument, 404, 409)
)
@needs(Role.ADMIN)
async def remove(site: OnSite, sender: FromSender, workspace: str, force: bool = False) -> Response:
    """Remove the directory of a workspace; its snapshots stay. Work that is nowhere else goes only with `force`.

    409 says why it stays: a job works in it, or it has changes that were not applied, merged or pushed.
    """
    await sender.must_be_person("remove workspaces")
    row = await site.ask(lambda reader: find_workspace(reader, workspace))
    await _remove(row, site, is_forced=force)
    return await _answer(site, row.id)


async def _remove(row: Workspace, site: ApiContext, *, is_forced: bool) -> None:
    """`RefusedError` for a workspace that stays, `WorkspaceError` for one that could not be removed."""
    context = site.context
    room = CleanupContext(
        state=context.state,
        reader=context.reader,
        clock=context.clock,
        files=context.open_workspaces(),
        snapshots=site.snapshots,
        policy_of=policies_of(context.agents, context.reader),
    )
    done = await clean([row], room, is_forced=is_forced)
    for refusal in done.refused:
        raise RefusedError(
            f"workspace {row.id} is kept: {refusal.reason}",
            next_step=NextStep(Action.CLEAN_WORKSPACE, workspace=row.id),
        )
    for problem in done.failures.values():
        raise WorkspaceError(f"workspace {row.id} could not be removed: {problem}")


async def _answer(site: ApiContext, reference: str) -> Response:
    context, now = site.context, site.context.clock.now()

    def look(reader: StateReader) -> WorkspaceDocument:
        row = find_workspace(reader, reference)
        shown = show_workspace(row, reader, context.open_workspaces(), site.snapshots, now)
        masked: WorkspaceDocument = context.secrets.mask(workspace_document(shown))
        return masked

    return document("workspace", await site.ask(look), now)


@router.get("/v1/jobs/{job}/diff", responses=answers("job_diff", JobDiff, 404, 409), tags=["jobs"])
@needs(Role.VIEWER)
async def diff(
    site: OnSite,
    job: str,
    turn: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
    all: bool = False,
    patch: bool = True,
) -> Response:
    """What a job changed: its files, and the git patch unless `patch=false`. Works after the workspace is removed.

    `turn` asks for one turn, `all` for everything since the workspace was made. Of a job that has not ended it
    is what its last snapshot has. The patch of more than 8 MiB of files is left out; `jobs diff` has it.
    """
    if turn is not None and all:
        raise UsageError("turn and all cannot be used together")

    def look(reader: StateReader) -> JobDiff:
        job_id = find_job_id(reader, job)
        changes = job_changes(reader, site.context.journals, job_id, turn=turn, is_from_base=all)
        compared = changes.comparison
        trees = (compared.store, compared.before, compared.after)
        paths = site.snapshots.changed_paths(*trees, other=compared.other)
        is_large = (
            patch and site.snapshots.changed_bytes(*trees, other=compared.other) > LARGEST_PATCH
        )
        text = None
        if patch and not is_large:
            text = site.snapshots.patch(*trees, other=compared.other)
        described: JobDiff = {
            **changes_document(changes, paths, text),
            "is_patch_left_out": is_large,
        }
        masked: JobDiff = site.context.secrets.mask(described)
        return masked

    return document("job_diff", await site.ask(look), site.context.clock.now())
