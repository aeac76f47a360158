"""A full disk: what cannot be made or snapshotted can be later, and nothing of the user's is harmed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from workspaces.scene import Scene, files_in, git, new_repository, noted, user_state, write

LARGE = {f"data/{number}.bin": os.urandom(50_000) for number in range(10)}


@contextmanager
def only_left(disk: Path, size: int) -> Iterator[None]:
    """Fill the disk up to so many bytes."""
    filler = disk / "filler"
    filler.write_bytes(b"x" * max(shutil.disk_usage(disk).free - size, 0))
    try:
        yield
    finally:
        filler.unlink()


@pytest.mark.parametrize("mode", [WorkspaceMode.WORKTREE, WorkspaceMode.COPY])
@pytest.mark.parametrize("left", [0, 8_192, 65_536, 300_000])
def test_workspace_is_made_once_there_is_space(
    small_disk: Path, mode: WorkspaceMode, left: int
) -> None:
    scene = Scene(new_repository(small_disk / "repo", LARGE), WorkspacePolicy(mode=mode))
    before = user_state(scene.root)
    with only_left(small_disk, left), pytest.raises(WorkspaceError) as caught:
        scene.make()
    assert caught.value.can_pass, caught.value
    assert "free some space" in str(caught.value.hint)
    assert not scene.top().exists()
    assert user_state(scene.root) == before
    scene.make()
    expected = files_in(scene.root, without=(".git", ".nightherd", ".nightherd-workspaces"))
    assert files_in(scene.top()) == expected
    assert user_state(scene.root) == before


@pytest.mark.parametrize("left", [0, 4_096, 40_000, 100_000])
def test_snapshot_is_taken_once_there_is_space(small_disk: Path, left: int) -> None:
    scene = Scene(new_repository(small_disk / "repo"))
    made = scene.make()
    row = noted(scene.row(), made)
    write(scene.top(), {f"new/{number}.bin": os.urandom(30_000) for number in range(5)})
    before = user_state(scene.root)
    with only_left(small_disk, left), pytest.raises(WorkspaceError) as caught:
        scene.snapshot(row)
    assert caught.value.can_pass, caught.value
    assert "free some space" in str(caught.value.hint)
    assert scene.reader.has(made.store, str(made.base_tree))
    snapshot = scene.snapshot(row)
    assert scene.stored(made.store, snapshot.tree) == files_in(scene.top())
    assert user_state(scene.root) == before


def test_workspace_is_removed_while_the_disk_is_full(small_disk: Path) -> None:
    scene = Scene(new_repository(small_disk / "repo"))
    row = noted(scene.row(), scene.make())
    with only_left(small_disk, 0):
        scene.remove(row)
    assert not scene.top().exists()
    assert git(scene.root, "worktree", "list").count("\n") == 0
