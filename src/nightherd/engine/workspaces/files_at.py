"""The files at a place of a conversation: which snapshot a fork, a diff or a lost workspace begins with."""

from __future__ import annotations

from nightherd.engine.contexts import Stores
from nightherd.model.ids import JobId, SessionId
from nightherd.model.sessions.session import Session
from nightherd.model.workflows.run import RunId
from nightherd.model.workspaces.snapshot import PlacedSnapshot
from nightherd.model.workspaces.workspace import Workspace
from nightherd.views.sessions.conversation import segments_of
from nightherd.views.workspaces.snapshots import snapshot_at, snapshots_of


def snapshot_at_fork(session: Session, stores: Stores) -> PlacedSnapshot | None:
    """Return the files that a forked session begins with; None when no snapshot was taken before that place."""
    parent_id = session.parent_session_id
    if parent_id is None:
        return None
    if session.base_messages == 0:
        return _first_snapshot(parent_id, stores)
    parts = segments_of(stores.reader, stores.journals, session)
    for part in reversed(parts):
        if part.job.session_id == session.id:
            continue
        placed = snapshot_at(stores.journals, part.job.id, part.upto)
        if placed is not None:
            return placed
    return None


def _first_snapshot(session_id: SessionId, stores: Stores) -> PlacedSnapshot | None:
    """Return what the files of a session were before anything was said in it."""
    parent = stores.reader.find_session(session_id)
    if parent is None:
        return None
    for job in stores.reader.jobs_of_session(parent.id):
        placed = snapshots_of(stores.journals, job.id)
        if placed:
            return placed[0]
    return snapshot_at_fork(parent, stores)


def last_snapshot(workspace: Workspace, stores: Stores) -> PlacedSnapshot | None:
    """Return the last snapshot of a workspace: as its last job recorded it, or one that was taken after that."""
    own = [
        placed
        for placed in (
            snapshots_of(stores.journals, workspace.job_id) if workspace.job_id is not None else ()
        )
        if placed.workspace == workspace.id
    ]
    # A tree that the journal does not name is of a cleanup: what a person did after the job is in it.
    if workspace.tree is None or any(placed.tree == workspace.tree for placed in own):
        return own[-1] if own else None
    return PlacedSnapshot(
        job_id=workspace.job_id or JobId(""),
        seq=0,
        turn=None,
        workspace=workspace.id,
        at="end",
        tree=workspace.tree,
        head=workspace.head,
    )


def kept_files(run_id: RunId, root: str, stores: Stores) -> PlacedSnapshot | None:
    """Return the files that the phases left whose work a retried or forked run keeps; None for other runs."""
    nodes = [node for node in stores.reader.nodes_of_run(run_id) if node.kept_from is not None]
    for node in sorted(nodes, key=lambda node: node.ended_at or node.created_at, reverse=True):
        job = stores.reader.find_job(node.job_id) if node.job_id is not None else None
        if job is None or job.workspace_id is None:
            continue
        workspace = stores.reader.find_workspace(job.workspace_id)
        placed = snapshots_of(stores.journals, job.id)
        if placed and workspace is not None and workspace.root == root:
            return placed[-1]
    return None
