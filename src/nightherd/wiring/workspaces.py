"""Workspaces opened: their files, their snapshots, and what removes them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from nightherd.wiring.stores import open_repair

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from typing import Any

    from nightherd.engine.contexts import Stores
    from nightherd.engine.doctor.record import RepairContext
    from nightherd.engine.workspaces.cleanup import CleanupContext
    from nightherd.model.agents.agent import Fleet
    from nightherd.ports import Landing, SetupCache, SnapshotReader, WorkspaceFiles, WorkspaceSurvey
    from nightherd.views.workflows.gate_artifact import Artifacts


def open_workspace_files(state_dir: Path) -> WorkspaceFiles:
    """What makes, snapshots and removes the directories of workspaces."""
    from nightherd.ports import no_probe
    from nightherd.workspaces.files import LocalWorkspaceFiles

    return LocalWorkspaceFiles(state_dir, probe=no_probe)


def open_setup_cache(state_dir: Path, files: WorkspaceFiles) -> SetupCache:
    """What remembers the setup commands that workspaces have had."""
    from nightherd.workspaces.setup_cache import LocalSetupCache

    return LocalSetupCache(state_dir, files)


def open_snapshot_reader(state_dir: Path) -> SnapshotReader:
    """What compares snapshots; it only reads."""
    from nightherd.workspaces.comparing import GitSnapshots

    return GitSnapshots(state_dir)


def open_artifacts(state_dir: Path, mask: Callable[[Any], Any] = lambda value: value) -> Artifacts:
    """What reads and replaces the artifacts of gates; `mask` takes secrets out of what is shown."""
    from nightherd.views.workflows.gate_artifact import Artifacts
    from nightherd.wiring.stores import open_journals
    from nightherd.workspaces.gate_files import LocalGateFiles

    files = LocalGateFiles(state_dir)
    return Artifacts(files=files, journals=open_journals(state_dir), mask=mask)


def open_survey(state_dir: Path) -> WorkspaceSurvey:
    """What looks at the directories of workspaces and their registrations."""
    from nightherd.workspaces.git import Git
    from nightherd.workspaces.survey import LocalSurvey

    return LocalSurvey(state_dir, Git())


def open_landing(state_dir: Path) -> Landing:
    """What brings the changes of workspaces to the user's files, branches and remotes."""
    from nightherd.wiring.stores import random_text, system_clock
    from nightherd.workspaces.git import Git
    from nightherd.workspaces.landing.local import LocalLanding

    return LocalLanding(state_dir, git=Git(), clock=system_clock(), random_text=random_text())


def is_worktree_source(directory: Path) -> bool:
    """Whether worktrees can be made of a directory: it is in a git repository with a commit."""
    from nightherd.errors import WorkspaceError
    from nightherd.workspaces.git import Git
    from nightherd.workspaces.repositories import locate, resolve_base

    git = Git()
    try:
        resolve_base(git, locate(git, str(directory)), None)
    except WorkspaceError:
        return False
    return True


def cleanup_context(state_dir: Path, stores: Stores, fleet: Fleet | None) -> CleanupContext:
    """Everything that removing workspaces needs; `fleet` says how their files are snapshotted."""
    from nightherd.engine.workspaces.cleanup import CleanupContext, policies_of

    return CleanupContext(
        state=stores.state,
        reader=stores.reader,
        clock=stores.clock,
        files=open_workspace_files(state_dir),
        snapshots=open_snapshot_reader(state_dir),
        policy_of=policies_of(fleet.agents if fleet is not None else {}, stores.reader),
    )


@asynccontextmanager
async def open_cleanup(state_dir: Path, fleet: Fleet | None) -> AsyncIterator[CleanupContext]:
    """The same with the state directory opened for it."""
    async with open_repair(state_dir) as record:
        await follow_moved_project(state_dir, record)
        yield cleanup_context(state_dir, record, fleet)


async def follow_moved_project(state_dir: Path, stores: Stores | RepairContext) -> None:
    """Let workspaces follow when the directory that holds the state directory was moved."""
    from functools import partial

    from nightherd.engine.workspaces.moved import follow_move

    await follow_move(stores, partial(open_workspace_files, state_dir))
