"""Copies and empty directories: exactly what was there, nothing that leads back, and snapshots like any other."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from nightherd.workspaces.copies import copy_tree
from workspaces.scene import (
    Scene,
    beginning,
    commit,
    files_in,
    git,
    new_repository,
    noted,
    user_state,
    write,
)

COPY = WorkspacePolicy(mode=WorkspaceMode.COPY)
EMPTY = WorkspacePolicy(mode=WorkspaceMode.EMPTY)


@pytest.fixture
def plain(tmp_path: Path) -> Scene:
    """A directory without a repository."""
    write(tmp_path / "plain", {"a.txt": "a\n", "deep/b.txt": "b\n"})
    return Scene(tmp_path / "plain", COPY)


def test_copy_has_everything_but_our_own_directories(plain: Scene) -> None:
    (plain.root / "run.sh").write_text("#!/bin/sh\n")
    (plain.root / "run.sh").chmod(0o755)
    (plain.root / "link").symlink_to("deep/b.txt")
    (plain.root / "outside").symlink_to("/etc")
    write(plain.root, {".nightherd/secret": "state\n", "deep/.nightherd/not-ours": "kept\n"})
    plain.make(plain.row("job-0"))
    made = plain.make()
    assert (made.origin, made.directory, made.branch) == ("copy", str(plain.top()), None)
    expected = files_in(plain.root, without=(".nightherd-workspaces",))
    del expected[".nightherd/secret"]
    expected = {name: file for name, file in expected.items() if not name.startswith(".nightherd/")}
    assert files_in(plain.top()) == expected
    assert plain.stored(made.store, made.snapshot.tree) == expected


def test_copy_keeps_times_and_modes(plain: Scene) -> None:
    path = plain.root / "deep" / "b.txt"
    os.utime(path, ns=(1, 1_234_567_890_123_456_789))
    path.chmod(0o640)
    (plain.root / "deep").chmod(0o750)
    plain.make()
    copied = (plain.top() / "deep" / "b.txt").stat()
    assert (copied.st_mtime_ns, stat.S_IMODE(copied.st_mode)) == (1_234_567_890_123_456_789, 0o640)
    assert stat.S_IMODE((plain.top() / "deep").stat().st_mode) == 0o750


def test_copy_leaves_pipes_and_sockets_out(plain: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(plain.root)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        plain.make()
    assert sorted(path.name for path in plain.top().iterdir()) == ["a.txt", "deep"]


def test_copy_of_a_sparse_file_is_sparse(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(100 * 1024**2)
        file.write(b"end")
        file.truncate(4 * 1024**3)
    copy_tree(tmp_path / "sparse", tmp_path / "copy")
    status = (tmp_path / "copy").stat()
    assert (status.st_size, status.st_blocks * 512 < 1024**2) == (4 * 1024**3, True)
    with (tmp_path / "copy").open("rb") as file:
        assert file.read(5) == b"begin"
        file.seek(100 * 1024**2)
        assert file.read(4) == b"end\0"


def test_copy_of_a_file_within_a_tree_that_is_read_only(tmp_path: Path) -> None:
    write(tmp_path / "source", {"locked/file": "x\n"})
    (tmp_path / "source" / "locked").chmod(0o500)
    copy_tree(tmp_path / "source", tmp_path / "target")
    assert files_in(tmp_path / "target") == {"locked/file": ("file", b"x\n")}
    assert stat.S_IMODE((tmp_path / "target" / "locked").stat().st_mode) == 0o500
    for place in ("source", "target"):
        (tmp_path / place / "locked").chmod(0o700)


def test_copy_over_something_that_is_there_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"source/a": "new\n", "target/a": "old\n"})
    with pytest.raises(WorkspaceError, match="cannot be copied"):
        copy_tree(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target" / "a").read_text() == "old\n"


# Repositories


def test_copy_of_a_repository_is_a_repository_of_its_own(scene: Scene) -> None:
    scene.policy = COPY
    git(scene.root, "worktree", "add", "--quiet", str(scene.root.parent / "side"))
    before = user_state(scene.root)
    made = scene.make()
    commit(scene.top(), {"new.txt": "in the copy\n"})
    assert git(scene.top(), "worktree", "list").count("\n") == 0
    assert user_state(scene.root) == before
    snapshot = scene.snapshot(noted(scene.row(), made))
    assert (snapshot.head, snapshot.changed) == (None, 1)


def test_copy_of_a_worktree_leaves_out_the_file_that_leads_to_its_repository(
    scene: Scene, tmp_path: Path
) -> None:
    git(scene.root, "worktree", "add", "--quiet", str(tmp_path / "side"))
    side = Scene(tmp_path / "side", COPY)
    made = side.make()
    assert not (side.top() / ".git").exists()
    assert "names a repository outside of the copy" in made.notes[0]


def test_copy_keeps_submodules_that_are_copied_with_it(scene: Scene, tmp_path: Path) -> None:
    library = new_repository(tmp_path / "library")
    git(
        scene.root,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(library),
        "lib",
    )
    scene.policy = COPY
    scene.make()
    commit(scene.top() / "lib", {"new.txt": "in the copy\n"})
    assert git(scene.root / "lib", "log", "--format=%s") == "first"


# Snapshots


def test_base_of_a_copy_is_what_was_copied(plain: Scene) -> None:
    made = plain.make()
    assert made.base_tree == made.snapshot.tree
    write(plain.top(), {"a.txt": "changed\n"})
    (plain.top() / "deep" / "b.txt").unlink()
    snapshot = plain.snapshot(noted(plain.row(), made))
    assert snapshot.changed == 2
    assert plain.stored(made.store, snapshot.tree) == files_in(plain.top())
    assert plain.make(noted(plain.row(), made)).origin == "kept"


def test_large_files_of_a_copy_are_left_out_of_its_base(plain: Scene) -> None:
    plain.policy = replace(COPY, largest_file=10)
    write(plain.root, {"large.bin": b"x" * 11})
    made = plain.make()
    assert made.snapshot.left_out == ("large.bin",)
    assert (plain.top() / "large.bin").is_file()


@pytest.mark.parametrize("policy", [COPY, EMPTY])
def test_fork_of_a_copy_has_the_files_of_the_snapshot(
    plain: Scene, policy: WorkspacePolicy
) -> None:
    plain.policy = policy
    made = plain.make()
    write(
        plain.top(),
        {"a.txt": b"changed\r\n", "new/file": "new\n", ".gitattributes": "* eol=crlf\n"},
    )
    shutil.rmtree(plain.top() / "deep", ignore_errors=True)
    snapshot = plain.snapshot(noted(plain.row(), made))
    write(plain.root, {"later.txt": "the user goes on\n"})
    forked = plain.make(plain.row("job-2"), beginning(made, snapshot))
    assert (forked.origin, forked.base_tree) == ("snapshot", made.base_tree)
    assert files_in(plain.top("job-2")) == files_in(plain.top())
    again = plain.snapshot(noted(plain.row("job-2"), forked))
    assert (again.tree, again.changed) == (snapshot.tree, 0)


def test_empty_workspace_is_empty(plain: Scene) -> None:
    plain.policy = EMPTY
    made = plain.make()
    assert (made.origin, list(plain.top().iterdir())) == ("empty", [])
    write(plain.top(), {"new.txt": "new\n"})
    assert plain.snapshot(noted(plain.row(), made)).changed == 1


def test_directory_to_copy_that_is_missing_is_refused(plain: Scene) -> None:
    with pytest.raises(WorkspaceError, match="there is no directory"):
        plain.make(plain.row(root=str(plain.root / "gone")))
    assert not plain.top().exists()


def test_copy_whose_record_was_lost_is_adopted(plain: Scene) -> None:
    made = plain.make()
    write(plain.top(), {"work.txt": "work\n"})
    shutil.rmtree(plain.state / "workspaces")
    kept = plain.make(noted(plain.row(), made))
    assert (kept.origin, kept.snapshot.changed) == ("kept", 1)
    assert (plain.top() / "work.txt").is_file()
