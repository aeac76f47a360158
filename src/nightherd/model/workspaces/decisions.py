"""Deciding about workspaces: who works in one, what it holds, and when it may go."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Row, Why
from nightherd.model.decisions.around import owned, session_of
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.sessions.session import Session
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workspaces.changes import (
    LandWorkspace,
    LeaveWorkspace,
    MoveWorkspace,
    NoteWorkspace,
    RemoveWorkspace,
    UseWorkspace,
)
from nightherd.model.workspaces.policy import Keep, WorkspaceScope
from nightherd.model.workspaces.workspace import (
    WORKSPACE_LIFECYCLE,
    Workspace,
    WorkspaceStatus,
)


def use(change: UseWorkspace, rows: Rows) -> Answer:
    """The job and its session are in the workspace; a new one is on record before it is made."""
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    proposed = change.workspace
    for other in rows.open_jobs_in_workspace(proposed.id):
        if other.id == job.id or other.id in change.shares:
            continue
        if other.session_id is not None and other.session_id == job.session_id:
            continue
        if change.run_id is not None and _run_of(other, rows) == change.run_id:
            continue
        message = f"job {other.id} ({other.status}) works in workspace {proposed.id}"
        return Refused(why=Why.WORKSPACE_BUSY, message=message, job=other)
    known = rows.get(Workspace, proposed.id)
    if known is None:
        workspace = replace(
            proposed, status=WorkspaceStatus.MAKING, number=rows.next_workspace_number()
        )
    elif known.status is WorkspaceStatus.REMOVING:
        message = f"workspace {known.id} is being removed"
        return Refused(why=Why.WORKSPACE_BUSY, message=message)
    elif known.status is WorkspaceStatus.REMOVED or (
        known.status is WorkspaceStatus.READY and proposed.status is WorkspaceStatus.MAKING
    ):
        # Its directory is gone: it is made again, and what is known of its work stays.
        status = WORKSPACE_LIFECYCLE.check(known.status, WorkspaceStatus.MAKING)
        workspace = replace(known, status=status, removed_at=None)
    else:
        workspace = known
    workspace = replace(
        workspace,
        job_id=job.id,
        session_id=job.session_id,
        last_used_at=change.at,
        keep=_keep(known, proposed, job.id),
    )
    placed = replace(job, workspace_id=workspace.id)
    written: list[Row] = [workspace, placed]
    session = session_of(job, rows)
    if session is not None:
        moved = replace(
            session,
            root=workspace.root,
            working_directory=change.directory,
            workspace_id=workspace.id,
        )
        if moved != session:
            written.append(moved)
    return Applied(rows=tuple(written), job=placed)


def _run_of(job: Job, rows: Rows) -> str | None:
    """The first workflow run above a job."""
    above: Job | None = job
    while above is not None and above.workflow_run_id is None:
        above = rows.get(Job, above.parent_job_id) if above.parent_job_id is not None else None
    run = rows.get(WorkflowRun, above.workflow_run_id or "") if above is not None else None
    return None if run is None else run.root


def _keep(known: Workspace | None, proposed: Workspace, job_id: JobId) -> Keep:
    """How long it is kept, as its agent says now; that of a run as the first job of the run says."""
    if known is not None and known.scope is WorkspaceScope.RUN and str(known.id) != job_id:
        return known.keep
    return proposed.keep


def leave(change: LeaveWorkspace, rows: Rows) -> Answer:
    """The session is in the agent's directory again."""
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    session = session_of(job, rows)
    if session is None:
        return Applied(rows=(), job=job)
    moved = replace(session, root=None, workspace_id=None, working_directory=change.directory)
    return Applied(rows=(moved,), job=job)


def move(change: MoveWorkspace, rows: Rows) -> Answer:
    """The workspace, and the session that worked in it last, are where the project is now."""
    known = rows.get(Workspace, change.workspace_id)
    if known is None:
        return _missing(change.workspace_id)
    if known.root != change.expected:
        return Refused(why=Why.STALE, message=f"workspace {known.id} is of {known.root}")
    written: list[Row] = [replace(known, root=change.root)]
    session = rows.get(Session, known.session_id) if known.session_id is not None else None
    if session is not None and session.workspace_id == known.id:
        moved = replace(session, root=change.root, working_directory=change.directory)
        written.append(moved)
    return Applied(rows=tuple(written))


def note(change: NoteWorkspace, rows: Rows) -> Answer:
    """What is known of its files now; what the change does not say stays."""
    if change.job_id is not None and change.epoch is not None:
        job = owned(change.job_id, change.epoch, rows)
        if isinstance(job, Refused):
            return job
    known = rows.get(Workspace, change.workspace_id)
    if known is None:
        return _missing(change.workspace_id)
    if not known.is_there:
        message = f"workspace {known.id} is {known.status}"
        return Refused(why=Why.STATUS, message=message)
    told = {
        name: value
        for name in ("store", "prefix", "branch", "base", "base_commit", "base_tree", "tree", "head", "left_out",
                     "size_bytes")
        if (value := getattr(change, name)) is not None
    }  # fmt: skip
    status = known.status
    if change.is_made and status is not WorkspaceStatus.READY:
        status = WORKSPACE_LIFECYCLE.check(status, WorkspaceStatus.READY)
    return Applied(rows=(replace(known, **told, status=status, last_used_at=change.at),))


def land(change: LandWorkspace, rows: Rows) -> Answer:
    """Its changes are somewhere else too."""
    known = rows.get(Workspace, change.workspace_id)
    if known is None:
        return _missing(change.workspace_id)
    landed = replace(known, landed=change.how, landed_tree=change.tree, landed_at=change.at)
    return Applied(rows=(landed,))


def remove(change: RemoveWorkspace, rows: Rows) -> Answer:
    """It is to be removed, or is gone: a tombstone, from which it can be made again."""
    known = rows.get(Workspace, change.workspace_id)
    if known is None:
        return _missing(change.workspace_id)
    if change.is_gone:
        if known.status is not WorkspaceStatus.REMOVING:
            message = f"workspace {known.id} is {known.status}"
            return Refused(why=Why.STATUS, message=message)
        gone = replace(known, status=WorkspaceStatus.REMOVED, removed_at=change.at, size_bytes=0)
        return Applied(rows=(gone,))
    if known.status in (WorkspaceStatus.REMOVING, WorkspaceStatus.REMOVED):
        return Applied(rows=())
    for other in rows.open_jobs_in_workspace(known.id):
        message = f"job {other.id} ({other.status}) works in workspace {known.id}"
        return Refused(why=Why.WORKSPACE_BUSY, message=message, job=other)
    if change.unused_since is not None and known.last_used_at > change.unused_since:
        message = f"job {known.job_id} has worked in workspace {known.id} since"
        return Refused(why=Why.WORKSPACE_BUSY, message=message)
    status = WORKSPACE_LIFECYCLE.check(known.status, WorkspaceStatus.REMOVING)
    going = replace(
        known,
        status=status,
        tree=change.tree or known.tree,
        head=change.head or known.head,
        left_out=known.left_out if change.left_out is None else change.left_out,
    )
    return Applied(rows=(going,))


def _missing(workspace_id: str) -> Refused:
    return Refused(why=Why.MISSING, message=f"there is no workspace {workspace_id}")
