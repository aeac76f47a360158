"""Workspaces: the directories that jobs work in, and what jobs changed, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.workspaces.cleanup import CleanupContext, clean, policies_of
from nightherd.errors import RefusedError, WorkspaceError
from nightherd.model.ids import JobId
from nightherd.model.workspaces.workspace import Workspace, WorkspaceQuery
from nightherd.next_step import Action, NextStep
from nightherd.ports import ChangedPath
from nightherd.views.jobs.jobs import find_job_id
from nightherd.views.workspaces.snapshots import job_changes
from nightherd.views.workspaces.workspaces import (
    ShownWorkspace,
    WorkspacePage,
    find_workspace,
    list_page,
    show_workspace,
)
from nightherd.wiring.machine import agent_above_here
from nightherd.wiring.workspaces import open_snapshot_reader


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDiff:
    """What a job changed."""

    job_id: JobId
    workspace: Workspace
    files: Sequence[ChangedPath]
    patch: bytes
    """As `git apply` takes it."""
    left_out: Sequence[str] = ()
    """Some of the files that the snapshot could not hold."""
    left_out_count: int = 0


class Workspaces:
    """The workspaces of an open fleet.

    A workspace is named by its id, a unique prefix of one, `@last`, or a job or session that works in it.
    """

    def __init__(self, context: WorkerContext, state_dir: Path) -> None:
        self._context = context
        self._state_dir = state_dir
        self._snapshots = open_snapshot_reader(state_dir)

    def list(self, query: WorkspaceQuery | None = None) -> WorkspacePage:
        """Return a page of workspaces, newest first."""
        context = self._context
        return list_page(context.reader, query or WorkspaceQuery(), context.clock.now())

    def show(self, workspace: str) -> ShownWorkspace:
        """Return a workspace with its directory, its size now, its jobs and what changed in it."""
        context = self._context
        row = find_workspace(context.reader, workspace)
        return show_workspace(
            row, context.reader, context.open_workspaces(), self._snapshots, context.clock.now()
        )

    def diff(self, job: str, *, turn: int | None = None, is_from_base: bool = False) -> JobDiff:
        """Return what a job changed, or one `turn` of it, or everything since its workspace was made.

        `WorkspaceNotFoundError` for a job that works in its agent's directory.
        """
        reader = self._context.reader
        changes = job_changes(
            reader,
            self._context.journals,
            find_job_id(reader, job),
            turn=turn,
            is_from_base=is_from_base,
        )
        compared = changes.comparison
        trees = (compared.store, compared.before, compared.after)
        return JobDiff(
            job_id=changes.job.id,
            workspace=changes.workspace,
            files=self._snapshots.changed_paths(*trees, other=compared.other),
            patch=self._snapshots.patch(*trees, other=compared.other),
            left_out=changes.left_out,
            left_out_count=changes.left_out_count,
        )

    async def remove(self, workspace: str, *, is_forced: bool = False) -> Workspace:
        """Remove the directory of a workspace and return its row; its snapshots stay.

        `RefusedError` while a job works in it, for a program that an agent started, and without `is_forced` for
        work that is nowhere else.
        """
        execution = await to_thread.run_sync(agent_above_here, self._state_dir)
        if execution is not None:
            raise RefusedError(
                f"only a person may remove workspaces, and an agent started this process (execution {execution})"
            )
        context = self._context
        row = find_workspace(context.reader, workspace)
        done = await clean([row], self._room(), is_forced=is_forced)
        for refusal in done.refused:
            raise RefusedError(
                f"workspace {row.id} is kept: {refusal.reason}",
                next_step=NextStep(Action.CLEAN_WORKSPACE, workspace=row.id),
            )
        for problem in done.failures.values():
            raise WorkspaceError(f"workspace {row.id} could not be removed: {problem}")
        return find_workspace(context.reader, row.id)

    def _room(self) -> CleanupContext:
        context = self._context
        return CleanupContext(
            state=context.state,
            reader=context.reader,
            clock=context.clock,
            files=context.open_workspaces(),
            snapshots=self._snapshots,
            policy_of=policies_of(context.agents, context.reader),
        )
