"""Removing: the directory and the registration go, work stays reachable, and only what is ours is touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import Made
from workspaces.scene import Scene, beginning, commit, files_in, git, noted, user_state, write

BRANCH = "nightherd/herder/job-1"


@pytest.fixture
def made(scene: Scene) -> Made:
    return scene.make()


@pytest.fixture
def row(scene: Scene, made: Made) -> Workspace:
    return noted(scene.row(), made)


def branches(scene: Scene) -> list[str]:
    return git(scene.root, "branch", "--format=%(refname:short)", "--list", "nightherd/*").split()


def test_directory_registration_record_and_unused_branch_go(scene: Scene, row: Workspace) -> None:
    before = user_state(scene.root)
    scene.remove(row)
    assert not scene.top().exists()
    assert not (scene.state / "workspaces" / "job-1").exists()
    assert git(scene.root, "worktree", "list").count("\n") == 0
    assert list((scene.root / ".git" / "worktrees").iterdir()) == []
    assert branches(scene) == []
    assert user_state(scene.root) == before


def test_removing_again_changes_nothing(scene: Scene, row: Workspace) -> None:
    scene.remove(row)
    scene.remove(row)
    assert not scene.top().exists()


def test_branch_with_commits_of_its_own_stays(scene: Scene, row: Workspace) -> None:
    tip = commit(scene.top(), {"done.txt": "done\n"})
    scene.remove(row)
    assert git(scene.root, "rev-parse", BRANCH) == tip


@pytest.mark.parametrize("ref", ["refs/heads/main", "refs/remotes/origin/topic", "refs/tags/v1"])
def test_branch_whose_commits_are_elsewhere_goes(scene: Scene, row: Workspace, ref: str) -> None:
    tip = commit(scene.top(), {"done.txt": "done\n"})
    git(scene.root, "update-ref", ref, tip)
    scene.remove(row)
    assert branches(scene) == []


def test_branch_that_the_user_checked_out_stays(
    scene: Scene, row: Workspace, tmp_path: Path
) -> None:
    git(scene.top(), "switch", "--quiet", "--detach")
    git(scene.root, "worktree", "add", "--quiet", str(tmp_path / "own"), BRANCH)
    scene.remove(row)
    assert branches(scene) == [BRANCH]
    assert git(tmp_path / "own", "status", "--porcelain") == ""


def test_commits_on_a_detached_head_are_kept(scene: Scene, row: Workspace) -> None:
    git(scene.top(), "switch", "--quiet", "--detach")
    tip = commit(scene.top(), {"done.txt": "done\n"})
    scene.remove(row)
    git(scene.root, "gc", "--quiet", "--prune=now")
    assert git(scene.root, "rev-parse", "refs/nightherd/job-1/head") == tip
    assert git(scene.root, "cat-file", "-t", tip) == "commit"


def test_snapshots_outlive_the_workspace_and_it_can_be_made_again(
    scene: Scene, made: Made, row: Workspace
) -> None:
    commit(scene.top(), {"done.txt": "done\n"})
    write(scene.top(), {"half.txt": "half\n"})
    files = files_in(scene.top())
    snapshot = scene.snapshot(row)
    scene.remove(row)
    git(scene.root, "gc", "--quiet", "--prune=now")
    assert scene.stored(made.store, snapshot.tree) == files
    again = scene.make(row, beginning(made, snapshot))
    assert (again.origin, again.branch) == ("snapshot", BRANCH)
    assert files_in(scene.top()) == files
    assert git(scene.top(), "status", "--porcelain") == "?? half.txt"


def test_read_only_directories_and_links_go_and_what_links_name_stays(
    scene: Scene, row: Workspace, tmp_path: Path
) -> None:
    write(tmp_path / "outside", {"precious": "x\n"})
    write(scene.top(), {"locked/deep/file": "x\n"})
    (scene.top() / "locked" / "link").symlink_to(tmp_path / "outside")
    for folder in ("locked/deep", "locked"):
        (scene.top() / folder).chmod(0o500)
    scene.remove(row)
    assert not scene.top().exists()
    assert not scene.top().with_name("job-1.removing").exists()
    assert (tmp_path / "outside" / "precious").is_file()


def test_worktree_of_a_repository_that_is_gone_is_removed(scene: Scene, tmp_path: Path) -> None:
    fleet = Scene(tmp_path / "fleet")
    fleet.root.mkdir()
    row = fleet.row(root=str(scene.root))
    row = noted(row, fleet.make(row))
    shutil.rmtree(scene.root)
    fleet.remove(row)
    assert not fleet.top().exists()


def test_other_worktrees_are_not_pruned(scene: Scene, row: Workspace, tmp_path: Path) -> None:
    git(scene.root, "worktree", "add", "--quiet", str(tmp_path / "own"))
    shutil.move(tmp_path / "own", tmp_path / "away")  # on a disk that is not mounted, say
    scene.remove(row)
    shutil.move(tmp_path / "away", tmp_path / "own")
    assert git(tmp_path / "own", "status", "--porcelain") == ""


@pytest.mark.parametrize("mode", [WorkspaceMode.COPY, WorkspaceMode.EMPTY])
def test_copies_are_removed_and_can_be_made_again(scene: Scene, mode: WorkspaceMode) -> None:
    scene.policy = WorkspacePolicy(mode=mode)
    made = scene.make()
    row = replace(noted(scene.row(), made), mode=mode)
    write(scene.top(), {"work.txt": "work\n"})
    snapshot = scene.snapshot(row)
    scene.remove(row)
    assert not scene.top().exists()
    scene.make(row, beginning(made, snapshot))
    assert (scene.top() / "work.txt").read_text() == "work\n"
