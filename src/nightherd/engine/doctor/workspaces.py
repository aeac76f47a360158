"""Workspaces: what is on disk and what is on record about them, as a check of the doctor.

Repairing finishes a removal, and removes what no job has worked in or what is not there any more. A directory with
files in it is never removed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from nightherd.engine.doctor.doctor import Check
from nightherd.engine.workspaces.cleanup import CleanupContext, remove
from nightherd.errors import RefusedError
from nightherd.model.doctor import Finding, Level
from nightherd.model.workspaces.policy import WorkspaceMode
from nightherd.model.workspaces.workspace import Workspace, WorkspaceQuery, WorkspaceStatus
from nightherd.next_step import Action, NextStep
from nightherd.ports import Standing, WorkspaceSurvey
from nightherd.views.workspaces.workspaces import every_workspace

NAME = "workspaces"
TABLE = "workspaces"
PAGE = 500


def workspace_check(context: CleanupContext, survey: WorkspaceSurvey) -> Check:
    """The check of the directories of workspaces."""
    return Check(
        NAME, "workspaces", partial(damaged_workspaces, context, survey), partial(repair, context)
    )


def damaged_workspaces(context: CleanupContext, survey: WorkspaceSurvey) -> Iterator[Finding]:
    """Return what does not fit between rows, directories and registrations of worktrees."""
    rows = list(every_workspace(context.reader, WorkspaceQuery(has_removed=True, limit=PAGE)))
    for row in rows:
        yield from _of_row(row, context, survey)
    known = {row.id for row in rows}
    gone = {row.id for row in rows if row.status is WorkspaceStatus.REMOVED}
    for name in survey.directories():
        if name not in known:
            yield _stray(survey.path(name), "no workspace is on record for this directory")
        elif name in gone:
            yield _stray(
                survey.path(name), f"workspace {name} was removed, and this is still there"
            )
    for path in survey.interrupted_landings():
        yield Finding(
            check=NAME,
            level=Level.WARNING,
            message="applying or merging the changes of a job was interrupted half-way",
            path=path,
            remedy="apply or merge the changes of any job: that finishes or undoes it first",
        )
    roots = {row.root for row in rows if row.mode is WorkspaceMode.WORKTREE}
    for found in survey.registrations(sorted(roots)):
        if found.id not in known:
            yield Finding(
                check=NAME,
                level=Level.WARNING,
                message=f"the repository of {found.root} has a worktree of nightherd that is not on record: "
                f"{found.directory}",
                path=found.directory,
                remedy=f"if you need nothing of it: git -C {found.root} worktree remove -f -f {found.directory}",
            )


def _of_row(row: Workspace, context: CleanupContext, survey: WorkspaceSurvey) -> Iterator[Finding]:
    """Return what is wrong with one workspace. While a job works in it, its worker looks after it."""
    if row.status is WorkspaceStatus.REMOVED or context.reader.open_jobs_in_workspace(row.id):
        return
    if row.status is WorkspaceStatus.REMOVING:
        yield _fixable(row, "is half removed", "finish the removal", survey)
        return
    standing = survey.standing(row)
    if row.status is WorkspaceStatus.MAKING and standing is Standing.WHOLE:
        standing = Standing.HALF_MADE  # no job has worked in it yet
    match standing:
        case Standing.MISSING if row.tree is None:
            made = "record that it is removed; its next job makes it"
            yield _fixable(row, "was never made", made, survey)
        case Standing.MISSING | Standing.HALF_REMOVED:
            again = "record that it is removed; its snapshots stay, and its next job gets its files again"
            yield _fixable(row, "has lost its directory", again, survey)
        case Standing.HALF_MADE:
            yield _fixable(row, "is half made", "remove it; its next job makes it again", survey)
        case Standing.BROKEN:
            yield Finding(
                check=NAME,
                level=Level.WARNING,
                message=f"what nightherd or git knows about workspace {row.id} is damaged",
                path=survey.path(row.id),
                row=(TABLE, row.id),
                remedy="its next job repairs it",
                next_step=NextStep(Action.SHOW_WORKSPACE, workspace=row.id),
            )
        case Standing.WHOLE:
            pass


def _fixable(row: Workspace, what: str, remedy: str, survey: WorkspaceSurvey) -> Finding:
    return Finding(
        check=NAME,
        level=Level.WARNING,
        message=f"workspace {row.id} of agent {row.agent!r} {what}",
        path=survey.path(row.id),
        row=(TABLE, row.id),
        remedy=remedy,
        is_fixable=True,
    )


def _stray(path: str, why: str) -> Finding:
    return Finding(
        check=NAME,
        level=Level.WARNING,
        message=f"{why}: {path}",
        path=path,
        remedy="look at it, and delete it if you need nothing of it",
    )


async def repair(context: CleanupContext, finding: Finding) -> None:
    """Remove the workspace that a finding is about. `RefusedError` when something works in it again."""
    _, key = finding.row or ("", "")
    row = context.reader.find_workspace(key)
    if row is None:
        raise RefusedError(f"there is no workspace {key}")
    await remove(row, context)
