"""`working_directory` of a workflow: its root, its workspace, and what has to be there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from config.folder import Folder
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workspaces.policy import (
    SHARED,
    Keep,
    SetupCommand,
    WorkspaceMode,
    WorkspacePolicy,
    WorkspaceScope,
)

PHASES = "phases: [{name: a, bash: ls}]\n"


def load_with(folder: Folder, directory: str) -> WorkflowDefinition:
    folder.write("workflows/w.yaml", f"{directory}\n{PHASES}")
    return folder.fleet("agents: []\n").load().fleet.workflows["w"]


def test_a_workflow_without_a_directory_leaves_it_to_its_agents(folder: Folder) -> None:
    definition = load_with(folder, "description: x")

    assert (definition.working_directory, definition.workspace) == (None, None)


def test_a_text_is_a_directory_that_all_share_named_from_the_file(folder: Folder) -> None:
    (folder.root / "app").mkdir()

    definition = load_with(folder, "working_directory: ../app")

    assert definition.working_directory == str(folder.root / "app")
    assert definition.workspace == SHARED


def test_inline_workflows_name_directories_from_the_fleet_file(folder: Folder) -> None:
    (folder.root / "app").mkdir()
    folder.fleet("workflows: {w: {working_directory: app, phases: [{name: a, bash: ls}]}}\n")

    definition = folder.load().fleet.workflows["w"]

    assert definition.working_directory == str(folder.root / "app")


def test_a_run_has_one_workspace_of_the_fleet_files_directory_by_default(folder: Folder) -> None:
    definition = load_with(folder, "working_directory: {mode: copy}")

    assert definition.working_directory == str(folder.root)
    assert definition.workspace == WorkspacePolicy(
        mode=WorkspaceMode.COPY, scope=WorkspaceScope.RUN
    )


def test_every_key_of_a_directory_is_in_its_policy(folder: Folder) -> None:
    (folder.root / "app" / ".git").mkdir(parents=True)

    definition = load_with(
        folder,
        "working_directory:\n  root: ../app\n  mode: worktree\n  scope: job\n  base: dev\n"
        "  setup: [{run: make, files: [a.txt], paths: [b], timeout: 1m}]\n  keep: never\n"
        "  snapshot: {ignored: true, largest_file: 1k}",
    )

    assert definition.workspace == WorkspacePolicy(
        mode=WorkspaceMode.WORKTREE,
        scope=WorkspaceScope.JOB,
        base="dev",
        setup=(
            SetupCommand(run="make", files=("a.txt",), paths=("b",), timeout=timedelta(minutes=1)),
        ),
        keep=Keep.NEVER,
        snapshot_ignored=True,
        largest_file=1024,
    )


@pytest.mark.parametrize(
    ("directory", "error"),
    [
        ("working_directory: nowhere", "1:20 the directory 'nowhere' does not exist"),
        ("working_directory: {root: nowhere}", "1:27 the directory 'nowhere' does not exist"),
        (
            "working_directory: {root: ., mode: worktree}",
            "1:36 mode worktree needs a git repository, and '{root}/workflows' is in none",
        ),
        (
            "working_directory: {scope: run}",
            "1:21 'scope' needs a workspace of its own: set 'mode' to worktree, copy or empty",
        ),
        ("working_directory: {auto_clone: false}", "1:21 unknown key 'auto_clone'"),
    ],
)
def test_a_directory_that_cannot_be_used_is_located(
    folder: Folder, directory: str, error: str
) -> None:
    folder.write("workflows/w.yaml", f"{directory}\n{PHASES}")
    folder.fleet("agents: []\n")

    assert folder.errors() == [f"workflows/w.yaml:{error.format(root=folder.root)}"]
