"""Cleanup: removing workspaces, by themselves when `keep` allows it, or because a person asks.

The row says that a workspace is removed before anything of it is deleted, so a killed removal is finished by
the next cleanup. Before that, a fresh snapshot says what would be lost. Snapshots stay: diffs and forks work on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from nightherd.errors import NightherdError, RefusedError, WorkspaceError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Refused, Why
from nightherd.model.schedules.jobs import for_schedule
from nightherd.model.text import counted
from nightherd.model.workspaces.changes import RemoveWorkspace
from nightherd.model.workspaces.policy import WorkspacePolicy
from nightherd.model.workspaces.workspace import Workspace, WorkspaceQuery, WorkspaceStatus
from nightherd.ports import Clock, SnapshotReader, StateReader, StateWriter, WorkspaceFiles
from nightherd.views.workspaces.workspaces import every_workspace, what_keeps_it

PAGE = 200

PolicyOf = Callable[[Workspace], WorkspacePolicy]
"""How the files of a workspace are snapshotted: as its agent says now."""


def usual_policy(workspace: Workspace) -> WorkspacePolicy:
    """Return the policy of a workspace whose agent is not known any more."""
    return WorkspacePolicy(mode=workspace.mode, scope=workspace.scope, keep=workspace.keep)


def policies_of(agents: Mapping[str, Agent], reader: StateReader) -> PolicyOf:
    """Return the policy that each workspace has by its agent and the schedule of its last job."""

    def policy_of(workspace: Workspace) -> WorkspacePolicy:
        agent = agents.get(workspace.agent)
        if agent is None:
            return usual_policy(workspace)
        job = reader.find_job(workspace.job_id) if workspace.job_id is not None else None
        policy = for_schedule(agent, job.schedule if job is not None else None).workspace
        is_like = policy.mode.has_branch and workspace.mode.has_branch
        if policy.mode is not workspace.mode and not is_like:
            return usual_policy(workspace)
        return replace(policy, mode=workspace.mode)

    return policy_of


class CleanupContext(msgspec.Struct, frozen=True, kw_only=True):
    """What cleaning up needs from the world."""

    state: StateWriter
    reader: StateReader
    clock: Clock
    files: WorkspaceFiles
    snapshots: SnapshotReader | None = None
    """Says how many files would be lost; None where nobody is told."""
    policy_of: PolicyOf = usual_policy


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace that was not removed, and why."""

    workspace: Workspace
    reason: str


class Cleanup(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a cleanup."""

    removed: Sequence[Workspace] = ()
    """As they were before; in a dry run, what would be removed."""
    refused: Sequence[Refusal] = ()
    failures: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Why a removal could not be finished, by workspace. The next cleanup tries again."""
    is_whole: bool = True
    """False when it was stopped on the way."""

    @property
    def freed_bytes(self) -> int:
        """What the removed ones held, as it was measured last."""
        return sum(workspace.size_bytes or 0 for workspace in self.removed)


def removable(reader: StateReader, now: datetime) -> Iterator[Workspace]:
    """The workspaces that `keep` does not hold any more, by their rows, and those that are half removed."""
    for workspace in every_workspace(reader, WorkspaceQuery(limit=PAGE)):
        if what_keeps_it(reader, workspace, now) is None:
            yield workspace


async def sweep(
    context: CleanupContext,
    *,
    is_dry: bool = False,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Cleanup:
    """Remove what `removable` names. One whose files changed after its last job is left to a person."""
    rows = list(removable(context.reader, context.clock.now()))
    return await clean(rows, context, is_dry=is_dry, is_sweep=True, is_stopped=is_stopped)


async def clean(
    workspaces: Sequence[Workspace],
    context: CleanupContext,
    *,
    is_forced: bool = False,
    is_dry: bool = False,
    is_sweep: bool = False,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Cleanup:
    """Remove these workspaces, except those in use, and without `is_forced` those with work that is nowhere else."""
    removed: list[Workspace] = []
    refused: list[Refusal] = []
    failures: dict[str, str] = {}
    is_whole = True
    for workspace in workspaces:
        if is_stopped():
            is_whole = False
            break
        try:
            await _clean_one(
                workspace, context, is_forced=is_forced, is_dry=is_dry, is_sweep=is_sweep
            )
        except RefusedError as error:
            refused.append(Refusal(workspace=workspace, reason=error.message))
        except NightherdError as error:
            failures[workspace.id] = error.message
        except OSError as error:
            failures[workspace.id] = f"{error.strerror}: {error.filename}"
        else:
            removed.append(workspace)
    return Cleanup(removed=removed, refused=refused, failures=failures, is_whole=is_whole)


async def _clean_one(
    workspace: Workspace,
    context: CleanupContext,
    *,
    is_forced: bool,
    is_dry: bool,
    is_sweep: bool,
) -> None:
    """Remove one workspace; `RefusedError` says what keeps it."""
    if workspace.status is WorkspaceStatus.REMOVED:
        return
    if workspace.status is not WorkspaceStatus.REMOVING:
        _check_unused(workspace, context)
        fresh = await _refreshed(workspace, context, is_forced=is_forced)
        if is_sweep:
            _check_unchanged(workspace, fresh)
        elif not is_forced:
            _check_clean(fresh, context)
        workspace = fresh
    if not is_dry:
        await remove(workspace, context)


async def remove(workspace: Workspace, context: CleanupContext) -> None:
    """Remove the workspace, or finish a removal that was begun; its last files are as `workspace` says.

    `RefusedError` when a job works in it, or has worked in it since `workspace` was read.
    """
    change = RemoveWorkspace(
        workspace_id=workspace.id,
        at=context.clock.now(),
        unused_since=workspace.last_used_at,
        tree=workspace.tree,
        head=workspace.head,
        left_out=workspace.left_out,
    )
    (answer,) = await context.state.apply([change])
    if isinstance(answer, Refused):
        raise RefusedError(answer.message)
    await context.files.remove(workspace)
    (answer,) = await context.state.apply([replace(change, at=context.clock.now(), is_gone=True)])
    # Refused for its status: another process that finished the same removal was faster.
    if isinstance(answer, Refused) and answer.why is not Why.STATUS:
        raise RefusedError(answer.message)


def _check_unused(workspace: Workspace, context: CleanupContext) -> None:
    for job in context.reader.open_jobs_in_workspace(workspace.id):
        raise RefusedError(f"job {job.id} ({job.status}) works in it")


async def _refreshed(
    workspace: Workspace, context: CleanupContext, *, is_forced: bool
) -> Workspace:
    """Return the row as its files are now."""
    files = context.files
    if workspace.status is WorkspaceStatus.MAKING or workspace.store is None:
        return workspace  # no job has worked in it
    size = await to_thread.run_sync(files.measure, workspace)
    if not size:
        return workspace  # its directory is gone
    try:
        snapshot = await files.snapshot(workspace, context.policy_of(workspace))
    except WorkspaceError as error:
        if is_forced:
            return workspace
        message = f"its files cannot be snapshotted: {error.message}"
        raise RefusedError(message) from error
    return replace(
        workspace,
        tree=snapshot.tree,
        head=snapshot.head,
        left_out=len(snapshot.left_out),
        size_bytes=size,
    )


def _check_unchanged(workspace: Workspace, fresh: Workspace) -> None:
    """`RefusedError` when a person or another program has been at work in it after its last job."""
    if fresh.left_out:
        raise RefusedError(_left_out_text(fresh))
    # Commits are no reason: merging makes one, and a branch with commits of its own stays.
    if fresh.tree != workspace.tree:
        raise RefusedError("its files changed after its last job ended")


def _check_clean(fresh: Workspace, context: CleanupContext) -> None:
    """`RefusedError` that says what would be lost."""
    if not fresh.is_dirty:
        return
    reasons: list[str] = []
    since = fresh.landed_tree or fresh.base_tree
    if fresh.tree is not None and fresh.tree not in (fresh.base_tree, fresh.landed_tree):
        reasons.append(_changed_text(fresh, since, context))
    if fresh.left_out:
        reasons.append(_left_out_text(fresh))
    raise RefusedError(", ".join(reasons))


def _changed_text(fresh: Workspace, since: str | None, context: CleanupContext) -> str:
    if context.snapshots is None or since is None or fresh.store is None or fresh.tree is None:
        return "changes that are not merged"
    try:
        paths = context.snapshots.changed_paths(fresh.store, since, fresh.tree)
    except WorkspaceError:
        return "changes that are not merged"
    return f"{counted(len(paths), 'changed file')} not merged"


def _left_out_text(fresh: Workspace) -> str:
    return f"{counted(fresh.left_out, 'file')} that no snapshot holds"
