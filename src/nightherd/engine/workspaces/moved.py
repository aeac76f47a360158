"""Moved projects: workspaces follow when the directory that holds the state directory lies elsewhere.

Where it was is known by the sessions that worked in workspaces.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import Protocol

from nightherd.model.change import Change
from nightherd.model.workspaces.changes import MoveWorkspace
from nightherd.model.workspaces.workspace import Workspace, WorkspaceQuery
from nightherd.ports import StateReader, StateWriter, WorkspaceFiles
from nightherd.views.workspaces.workspaces import every_workspace

PAGE = 500


class Rows(Protocol):
    """What following a move reads and writes; contexts and records are that."""

    @property
    def state(self) -> StateWriter: ...
    @property
    def reader(self) -> StateReader: ...


async def follow_move(rows: Rows, open_files: Callable[[], WorkspaceFiles]) -> int:
    """Record where the directories of workspaces are now; return how many had moved. Cheap when none had."""
    if not rows.reader.list_workspaces(WorkspaceQuery(has_removed=True, limit=1)):
        return 0
    files = open_files()
    query = WorkspaceQuery(has_removed=True, limit=PAGE)
    known = list(every_workspace(rows.reader, query))
    there = {root: files.is_directory(root) for root in {workspace.root for workspace in known}}
    lost = [workspace for workspace in known if not there[workspace.root]]
    before = _projects_before(lost, rows.reader, files) if lost else ()
    changes: list[Change] = []
    for workspace in lost:
        root = _moved(workspace, before, files)
        if root is None:
            continue
        changes.append(
            MoveWorkspace(
                workspace_id=workspace.id,
                expected=workspace.root,
                root=root,
                directory=files.directory(workspace),
            )
        )
    if changes:
        await rows.state.apply(changes)
    return len(changes)


def _projects_before(
    lost: Sequence[Workspace], reader: StateReader, files: WorkspaceFiles
) -> list[str]:
    """Return where the project was when sessions worked in these workspaces."""
    projects: dict[str, None] = {}
    for workspace in lost:
        session = reader.find_session(workspace.session_id) if workspace.session_id else None
        if session is None or session.workspace_id != workspace.id:
            continue
        top, found, _ = session.working_directory.partition(f"/{workspace.id}")
        if found and posixpath.dirname(top) != _project(workspace, files):
            projects[posixpath.dirname(top)] = None
    return list(projects)


def _moved(workspace: Workspace, before: Sequence[str], files: WorkspaceFiles) -> str | None:
    """Return where the root of a workspace is now; None when nobody knows."""
    for project in before:
        if workspace.root != project and not workspace.root.startswith(f"{project}/"):
            continue
        path = posixpath.relpath(workspace.root, project)
        moved = posixpath.normpath(posixpath.join(_project(workspace, files), path))
        if files.is_directory(moved):
            return moved
    return None


def _project(workspace: Workspace, files: WorkspaceFiles) -> str:
    """Return the directory that holds the state directory and that of workspaces."""
    top = files.directory(workspace).partition(f"/{workspace.id}")[0]
    return posixpath.dirname(top)
