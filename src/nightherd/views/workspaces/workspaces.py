"""Workspaces as every surface shows them: found by reference, listed in pages, described as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypedDict

import msgspec
from msgspec.structs import replace

from nightherd.errors import (
    AmbiguousIdError,
    NotFoundError,
    WorkspaceError,
    WorkspaceNotFoundError,
)
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.sessions.session import SESSION_LIFECYCLE, is_expired
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.model.workspaces.keeping import Hold, hold_text, what_keeps
from nightherd.model.workspaces.policy import Keep, WorkspaceMode, WorkspaceScope
from nightherd.model.workspaces.workspace import (
    Landed,
    Workspace,
    WorkspaceQuery,
    WorkspaceStatus,
)
from nightherd.next_step import Action, NextStep
from nightherd.ports import ChangedPath, SnapshotReader, StateReader, WorkspaceFiles
from nightherd.views.jobs.jobs import LAST, find_job_id, get_job, timestamp
from nightherd.views.sessions.sessions import find_session
from nightherd.views.workspaces.snapshots import HOW_TO_GET_ONE, PathRow, path_row

SHOWN_CANDIDATES = 5
SHOWN_JOBS = 20
PAGE = 200
MOST_PARENTS = 100
"""Jobs above a job that are looked at for the first of its run."""


class WorkspaceView(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace with what its jobs say about it."""

    workspace: Workspace
    open_jobs: Sequence[Job] = ()
    """Those in it that have not ended."""
    hold: Hold | None = None
    """What keeps it; None when retention removes it, or it is removed."""

    @property
    def state(self) -> str:
        """Where it stands, in one word."""
        row = self.workspace
        if row.status in (WorkspaceStatus.REMOVING, WorkspaceStatus.REMOVED):
            return row.status.value
        if self.open_jobs:
            return "working"
        if row.status is WorkspaceStatus.MAKING:
            return row.status.value
        if row.is_dirty:
            return "dirty"
        has_landed = row.landed is not None and row.landed_tree == row.tree
        return row.landed.value if row.landed is not None and has_landed else "clean"


class WorkspacePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some workspaces, newest first, and the cursor of the next page if there is one."""

    workspaces: Sequence[WorkspaceView]
    next_before: int | None = None


class ShownWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """One workspace with everything around it, its directory included."""

    view: WorkspaceView
    directory: str
    is_there: bool
    """Whether its directory is there and whole."""
    size_bytes: int | None
    jobs: Sequence[Job] = ()
    """Those that worked in it, newest first."""
    changes: Sequence[ChangedPath] = ()
    """What differs between what it began with and its last snapshot."""


def find_workspace(reader: StateReader, reference: str) -> Workspace:
    """Return the one workspace that `reference` means: its id, a unique prefix, `@last`, or a job or session in it."""
    if reference == LAST:
        newest = reader.list_workspaces(WorkspaceQuery(has_removed=True, limit=1))
        if not newest:
            raise WorkspaceNotFoundError("there are no workspaces yet", hint=HOW_TO_GET_ONE)
        return newest[0]
    known = reader.find_workspace(reference)
    if known is not None:
        return known
    inside = _inside(reader, reference)
    if inside is not None:
        return inside
    found = reader.workspace_ids(reference, SHOWN_CANDIDATES + 1) if reference else ()
    if len(found) > 1:
        shown = ", ".join(found[:SHOWN_CANDIDATES])
        raise AmbiguousIdError(
            f"{reference!r} could be {shown}", hint="give more characters of the id"
        )
    row = reader.find_workspace(found[0]) if found else None
    if row is None:
        raise WorkspaceNotFoundError(
            f"no workspace, job or session begins with {reference!r}",
            next_step=NextStep(Action.LIST_WORKSPACES),
        )
    return row


def _inside(reader: StateReader, reference: str) -> Workspace | None:
    """Return the workspace of the job or session of that name; `WorkspaceNotFoundError` when that has none."""
    owner, workspace_id = _job_or_session(reader, reference)
    if owner is None:
        return None
    workspace = reader.find_workspace(workspace_id) if workspace_id is not None else None
    if workspace is None:
        raise WorkspaceNotFoundError(
            f"{owner} has no workspace: it has not started, or works in its agent's directory (mode: shared)",
            hint=HOW_TO_GET_ONE,
        )
    return workspace


def _job_or_session(reader: StateReader, reference: str) -> tuple[str | None, str | None]:
    """Return what a reference means in words, and the workspace that it is in."""
    with suppress(NotFoundError):
        job = get_job(reader, find_job_id(reader, reference))
        return f"job {job.id}", job.workspace_id
    with suppress(NotFoundError):
        session = find_session(reader, reference)
        return f"session {session.id}", session.workspace_id
    return None, None


def observe(reader: StateReader, workspace: Workspace, now: datetime) -> WorkspaceView:
    """Return the workspace with what its jobs say about it."""
    return WorkspaceView(
        workspace=workspace,
        open_jobs=reader.open_jobs_in_workspace(workspace.id),
        hold=what_keeps_it(reader, workspace, now),
    )


def show_workspace(
    row: Workspace,
    reader: StateReader,
    files: WorkspaceFiles,
    snapshots: SnapshotReader,
    now: datetime,
) -> ShownWorkspace:
    """Return the workspace with everything around it. Measures its directory and compares its snapshots."""
    is_there = row.is_there and files.is_whole(row)
    return ShownWorkspace(
        view=observe(reader, row, now),
        directory=files.directory(row),
        is_there=is_there,
        size_bytes=files.measure(row) if is_there else row.size_bytes,
        jobs=reader.jobs_of_workspace(row.id, SHOWN_JOBS),
        changes=_changes(row, snapshots),
    )


def _changes(row: Workspace, snapshots: SnapshotReader) -> Sequence[ChangedPath]:
    """What the workspace changed, as of its last snapshot; nothing where the store is gone."""
    if row.store is None or row.base_tree is None or row.tree is None:
        return ()
    with suppress(WorkspaceError):
        return snapshots.changed_paths(row.store, row.base_tree, row.tree)
    return ()


def list_page(reader: StateReader, query: WorkspaceQuery, now: datetime) -> WorkspacePage:
    """Return one page of workspaces, newest first."""
    rows = reader.list_workspaces(replace(query, limit=query.limit + 1))
    page = [observe(reader, row, now) for row in rows[: query.limit]]
    has_more = len(rows) > query.limit
    return WorkspacePage(
        workspaces=page, next_before=page[-1].workspace.number if has_more else None
    )


def every_workspace(reader: StateReader, query: WorkspaceQuery) -> Iterator[Workspace]:
    """Every workspace that the query is about, newest first; its limit is how many are read at once."""
    while True:
        page = reader.list_workspaces(query)
        yield from page
        if len(page) < query.limit:
            return
        query = replace(query, before=page[-1].number)


def total_size(reader: StateReader, agent: str | None = None) -> int:
    """Return the bytes of all workspaces that are not removed, as they were measured last."""
    rows = every_workspace(reader, WorkspaceQuery(agent=agent, limit=PAGE))
    return sum(row.size_bytes or 0 for row in rows)


def what_keeps_it(reader: StateReader, workspace: Workspace, now: datetime) -> Hold | None:
    """Return what keeps the workspace, as its jobs and its session stand now."""
    if workspace.status is WorkspaceStatus.REMOVED:
        return None
    job_id = workspace.job_id
    last = reader.find_job(job_id) if job_id is not None else None
    return what_keeps(
        workspace,
        has_open_job=bool(reader.open_jobs_in_workspace(workspace.id)),
        is_owner_over=_is_owner_over(reader, workspace, now),
        last_status=_last_status(reader, workspace, last),
    )


def _last_status(reader: StateReader, workspace: Workspace, last: Job | None) -> JobStatus | None:
    """How the work in it ended: of a workspace that a workflow run shares, the whole run."""
    run = None
    if workspace.scope is WorkspaceScope.RUN and last is not None:
        run = run_of_job(reader, first_of_run(reader, last.id))
    if run is not None and run.is_terminal:
        is_good = run.status is RunStatus.SUCCEEDED
        return JobStatus.COMPLETED if is_good else JobStatus.FAILED
    return last.status if last is not None else None


def run_of_job(reader: StateReader, job: Job | None) -> WorkflowRun | None:
    """Return the first run of the tree of workflow runs that a job is a phase of; None for other jobs."""
    if job is None or job.workflow_run_id is None:
        return None
    run = reader.find_run(RunId(job.workflow_run_id))
    if run is None or run.root_run_id is None:
        return run
    return reader.find_run(run.root_run_id)


def _is_owner_over(reader: StateReader, workspace: Workspace, now: datetime) -> bool:
    """Whether nothing continues in the workspace by itself."""
    if workspace.scope is WorkspaceScope.RUN and workspace.job_id is not None:
        first = first_of_run(reader, workspace.job_id)
        run = run_of_job(reader, first)
        return run.is_terminal if run is not None else first is None or first.is_terminal
    if workspace.scope is not WorkspaceScope.SESSION or workspace.session_id is None:
        return True
    session = reader.find_session(workspace.session_id)
    if session is None or session.workspace_id != workspace.id or session.removed_at is not None:
        return True
    return session.status in SESSION_LIFECYCLE.terminal or is_expired(session, now)


def first_of_run(reader: StateReader, job_id: JobId) -> Job | None:
    """Return the first job of the run that a job belongs to."""
    job = reader.find_job(job_id)
    for _ in range(MOST_PARENTS):
        if job is None or job.parent_job_id is None:
            break
        parent = reader.find_job(job.parent_job_id)
        if parent is None:
            break
        job = parent
    return job


class WorkspaceRow(TypedDict):
    """A workspace as lists have it."""

    id: str
    agent: str
    mode: WorkspaceMode
    scope: WorkspaceScope
    status: WorkspaceStatus
    root: str
    created_at: str
    last_used_at: str
    keep: Keep
    session_id: str | None
    job_id: str | None
    store: str | None
    prefix: str
    branch: str | None
    base: str | None
    base_commit: str | None
    base_tree: str | None
    tree: str | None
    head: str | None
    left_out: int
    size_bytes: int | None
    landed: Landed | None
    landed_tree: str | None
    landed_at: str | None
    removed_at: str | None
    number: int
    state: str
    is_dirty: bool
    kept_by: Hold | None
    open_jobs: list[str]


class WorkspaceJobRow(TypedDict):
    """A job that worked in a workspace."""

    id: str
    status: JobStatus


class WorkspaceDocument(WorkspaceRow):
    """One workspace with everything around it."""

    directory: str
    is_there: bool
    kept_because: str | None
    jobs: list[WorkspaceJobRow]
    changes: list[PathRow]


def workspace_row(view: WorkspaceView) -> WorkspaceRow:
    """Return a workspace as lists have it."""
    row = view.workspace
    return {
        "id": row.id,
        "agent": row.agent,
        "mode": row.mode,
        "scope": row.scope,
        "status": row.status,
        "root": row.root,
        "created_at": timestamp(row.created_at),
        "last_used_at": timestamp(row.last_used_at),
        "keep": row.keep,
        "session_id": row.session_id,
        "job_id": row.job_id,
        "store": row.store,
        "prefix": row.prefix,
        "branch": row.branch,
        "base": row.base,
        "base_commit": row.base_commit,
        "base_tree": row.base_tree,
        "tree": row.tree,
        "head": row.head,
        "left_out": row.left_out,
        "size_bytes": row.size_bytes,
        "landed": row.landed,
        "landed_tree": row.landed_tree,
        "landed_at": timestamp(row.landed_at),
        "removed_at": timestamp(row.removed_at),
        "number": row.number,
        "state": view.state,
        "is_dirty": row.is_dirty,
        "kept_by": view.hold,
        "open_jobs": [job.id for job in view.open_jobs],
    }


def workspace_document(shown: ShownWorkspace) -> WorkspaceDocument:
    """Return everything about one workspace."""
    view = shown.view
    return {
        **workspace_row(view),
        "directory": shown.directory,
        "is_there": shown.is_there,
        "size_bytes": shown.size_bytes,
        "kept_because": hold_text(view.hold, view.workspace),
        "jobs": [{"id": job.id, "status": job.status} for job in shown.jobs],
        "changes": [path_row(path) for path in shown.changes],
    }
