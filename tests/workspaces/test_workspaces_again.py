"""Workspaces that are made again: kept, repaired, adopted, or refused because they are copies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import WorkspaceMode
from workspaces.scene import (
    Scene,
    beginning,
    changed_workspace,
    commit,
    files_in,
    git,
    noted,
    write,
)


def test_workspace_that_is_whole_is_kept_as_it_is(scene: Scene) -> None:
    made = scene.make()
    write(scene.top(), {"work.txt": "work\n"})
    kept = scene.make(noted(scene.row(), made))
    assert (kept.origin, kept.snapshot.changed) == ("kept", 1)
    assert (scene.top() / "work.txt").read_text() == "work\n"
    assert kept.base_commit == made.base_commit


def test_row_that_was_not_written_after_making_learns_where_it_began(scene: Scene) -> None:
    made = scene.make()
    commit(scene.root, {"README.md": "the base moves on\n"})
    again = scene.make()
    assert (again.origin, again.base_commit, again.base_tree) == (
        "base", made.base_commit, made.base_tree,
    )  # fmt: skip


def test_directory_that_vanished_is_made_again_from_the_snapshot(scene: Scene) -> None:
    made, snapshot = changed_workspace(scene)
    tip = git(scene.top(), "rev-parse", "HEAD")
    at_snapshot = files_in(scene.top())
    shutil.rmtree(scene.top())
    row = noted(scene.row(), made)
    assert not scene.files.is_whole(row)
    again = scene.make(row, beginning(made, snapshot))
    assert again.origin == "snapshot"
    assert files_in(scene.top()) == at_snapshot
    assert git(scene.top(), "rev-parse", "HEAD") == tip
    assert git(scene.root, "worktree", "list", "--porcelain").count("nightherd-workspaces") == 1


def test_directory_that_vanished_with_commits_on_its_branch_has_them_again(scene: Scene) -> None:
    made = scene.make()
    tip = commit(scene.top(), {"done.txt": "done\n"})
    shutil.rmtree(scene.top())
    again = scene.make(noted(scene.row(), made))
    assert again.snapshot.head == tip
    assert (scene.top() / "done.txt").is_file()
    assert again.base_commit == made.base_commit


def test_lost_record_of_a_directory_costs_no_work(scene: Scene) -> None:
    made, snapshot = changed_workspace(scene)
    shutil.rmtree(scene.state / "workspaces")
    row = replace(noted(scene.row(), made), tree=snapshot.tree)
    again = scene.make(row)
    assert (again.origin, again.snapshot.tree) == ("kept", snapshot.tree)
    assert (scene.top() / "new" / "file.txt").is_file()


def test_moved_state_directory_and_repository_are_repaired(scene: Scene, tmp_path: Path) -> None:
    made = scene.make()
    commit(scene.top(), {"done.txt": "done\n"})
    write(scene.top(), {"half.txt": "half\n"})
    moved = Scene(scene.root.rename(tmp_path / "moved"))
    row = replace(noted(scene.row(), made), root=str(moved.root))
    kept = moved.make(row)
    assert kept.origin == "kept"
    assert git(moved.top(), "status", "--porcelain") == "?? half.txt"
    assert git(moved.root, "worktree", "list", "--porcelain").count(str(moved.top())) == 1
    assert moved.stored(made.store, kept.snapshot.tree) == files_in(moved.top())


def test_repository_that_moved_while_a_job_worked_is_found_by_the_snapshot(
    scene: Scene, tmp_path: Path
) -> None:
    state = Scene(tmp_path / "fleet")
    state.root.mkdir()
    made = state.make(state.row(root=str(scene.root)))
    scene.root.rename(tmp_path / "elsewhere")
    write(state.top(), {"half.txt": "half\n"})
    row = replace(noted(state.row(), made), root=str(tmp_path / "elsewhere"))
    snapshot = state.snapshot(row)
    assert state.stored(made.store, snapshot.tree) == files_in(state.top())
    assert git(state.top(), "status", "--porcelain") == "?? half.txt"


def test_copied_state_directory_is_refused(scene: Scene, tmp_path: Path) -> None:
    made = scene.make()
    copy = Scene(tmp_path / "copy")
    copy.root.mkdir()
    for name in (".nightherd", ".nightherd-workspaces"):
        shutil.copytree(scene.root / name, copy.root / name, symlinks=True)
    row = noted(scene.row(), made)
    with pytest.raises(WorkspaceError, match="is a copy") as caught:
        copy.make(row)
    assert str(scene.top()) in str(caught.value)
    copy.remove(row)
    assert not copy.top().exists()
    assert git(scene.top(), "status", "--porcelain") == ""


def test_replaced_git_file_is_repaired_and_what_stood_there_is_kept(scene: Scene) -> None:
    made = scene.make()
    (scene.top() / ".git").unlink()
    git(scene.top(), "init", "--quiet")
    scene.make(noted(scene.row(), made))
    assert git(scene.top(), "rev-parse", "--abbrev-ref", "HEAD") == made.branch
    assert (scene.top() / ".git.replaced-1" / "HEAD").is_file()


def test_registration_that_was_deleted_is_made_again_around_the_files(scene: Scene) -> None:
    made = scene.make()
    tip = commit(scene.top(), {"done.txt": "done\n"})
    write(scene.top(), {"half.txt": "half\n"})
    git(scene.root, "worktree", "unlock", str(scene.top()))
    shutil.rmtree(scene.root / ".git" / "worktrees")
    kept = scene.make(noted(scene.row(), made))
    assert (kept.origin, kept.snapshot.head) == ("kept", tip)
    assert git(scene.top(), "status", "--porcelain") == "?? half.txt"
    assert not (scene.top().parent / ".repairing" / "job-1").exists()


@pytest.mark.parametrize(
    "command", [["worktree", "prune", "--expire=now"], ["gc", "--prune=now", "--quiet"]]
)
@pytest.mark.parametrize("is_away", [False, True])
def test_cleaning_of_the_repository_does_not_harm_a_workspace(
    scene: Scene, command: list[str], is_away: bool
) -> None:
    made, snapshot = changed_workspace(scene)
    at_snapshot = files_in(scene.top())
    if is_away:
        scene.top().rename(scene.root / "away")
    git(scene.root, *command)
    if is_away:
        (scene.root / "away").rename(scene.top())
    kept = scene.make(noted(scene.row(), made))
    assert (kept.origin, kept.snapshot.tree) == ("kept", snapshot.tree)
    assert files_in(scene.top()) == at_snapshot
    assert scene.stored(kept.store, kept.snapshot.tree) == at_snapshot


def test_two_workspaces_of_one_repository_share_a_store(scene: Scene) -> None:
    first, second = scene.make(), scene.make(scene.row("job-2"))
    assert first.store == second.store
    write(scene.top(), {"only-here.txt": "1\n"})
    assert scene.snapshot(noted(scene.row(), first)).changed == 1
    assert scene.snapshot(noted(scene.row("job-2"), second)).changed == 0


def test_measure_counts_what_is_on_disk_and_follows_no_link(scene: Scene, tmp_path: Path) -> None:
    scene.make()
    small = scene.files.measure(scene.row())
    write(tmp_path, {"large": b"x" * 1_000_000})
    (scene.top() / "link").symlink_to(tmp_path / "large")
    (scene.top() / "sparse").touch()
    with (scene.top() / "sparse").open("r+b") as file:
        file.truncate(10_000_000)
    assert scene.files.measure(scene.row()) - small < 100_000
    write(scene.top(), {"large": b"x" * 1_000_000})
    assert scene.files.measure(scene.row()) - small >= 1_000_000


def test_mode_of_the_row_decides_not_that_of_the_policy(scene: Scene) -> None:
    made = scene.make(scene.row(mode=WorkspaceMode.EMPTY))
    assert made.origin == "empty"
