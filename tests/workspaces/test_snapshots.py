"""Snapshots: exactly the files, byte for byte, whatever an agent does to them, and readable for good."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.snapshot import Snapshot
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import Made
from nightherd.workspaces import scan
from nightherd.workspaces.record import Record
from soak import often
from workspaces.scene import Scene, beginning, commit, files_in, git, new_repository, noted, write


@pytest.fixture
def made(scene: Scene) -> Made:
    return scene.make()


@pytest.fixture
def row(scene: Scene, made: Made) -> Workspace:
    return noted(scene.row(), made)


def holds_exactly_the_files(scene: Scene, made: Made, snapshot: Snapshot) -> bool:
    return scene.stored(made.store, snapshot.tree) == files_in(scene.top())


def test_nothing_changed_is_the_same_tree(scene: Scene, made: Made, row: Workspace) -> None:
    snapshot = scene.snapshot(row)
    assert snapshot == Snapshot(tree=str(made.base_tree), head=made.base_commit)


def test_every_kind_of_change_is_held(scene: Scene, made: Made, row: Workspace) -> None:
    top = scene.top()
    write(top, {"README.md": "changed\n", "a/b/c/new.txt": "new\n", "empty": b""})
    (top / "src" / "app.py").unlink()
    (top / "src" / "lib" / "cow.py").chmod(0o755)
    (top / "link").symlink_to("nowhere")
    snapshot = scene.snapshot(row)
    assert snapshot.changed == 6
    assert holds_exactly_the_files(scene, made, snapshot)


def test_snapshots_follow_each_other(scene: Scene, made: Made, row: Workspace) -> None:
    trees = []
    for number in range(3):
        write(scene.top(), {"counter": f"{number}\n"})
        snapshot = scene.snapshot(row)
        assert (snapshot.changed, holds_exactly_the_files(scene, made, snapshot)) == (1, True)
        trees.append(snapshot.tree)
    (scene.top() / "counter").unlink()
    assert scene.snapshot(row).tree == made.base_tree
    assert len(set(trees)) == 3


def test_change_within_the_second_and_of_the_same_size_is_seen(
    scene: Scene, made: Made, row: Workspace
) -> None:
    for number in range(20):
        write(scene.top(), {"README.md": f"{number:07}"})
        assert (
            scene.stored(made.store, scene.snapshot(row).tree)["README.md"][1] == b"%07d" % number
        )


def test_file_becomes_a_directory_and_back(scene: Scene, made: Made, row: Workspace) -> None:
    top = scene.top()
    (top / "README.md").unlink()
    write(top, {"README.md/chapter": "one\n"})
    assert holds_exactly_the_files(scene, made, scene.snapshot(row))
    shutil.rmtree(top / "README.md")
    shutil.rmtree(top / "src")
    write(top, {"README.md": "a file again\n", "src": "a file too\n"})
    assert holds_exactly_the_files(scene, made, scene.snapshot(row))


def test_ignored_files_are_left_alone_unless_they_are_wanted(
    scene: Scene, made: Made, row: Workspace
) -> None:
    (scene.root / ".git" / "info" / "exclude").write_text("secret.txt\n")
    write(scene.top(), {".gitignore": "*.log\n", "a.log": "1\n", "secret.txt": "2\n", "b": "3\n"})
    snapshot = scene.snapshot(row)
    new = scene.stored(made.store, snapshot.tree).keys() - scene.stored(
        made.store, str(made.base_tree)
    )
    assert (new, snapshot.left_out) == ({".gitignore", "b"}, ())
    scene.policy = replace(scene.policy, snapshot_ignored=True)
    assert holds_exactly_the_files(scene, made, scene.snapshot(row))


def test_file_that_is_ignored_later_stays_in_snapshots_and_forks(
    scene: Scene, made: Made, row: Workspace
) -> None:
    write(scene.top(), {"a.log": "1\n"})
    scene.snapshot(row)
    write(scene.top(), {".gitignore": "*.log\n", "a.log": "2\n"})
    snapshot = scene.snapshot(row)
    assert holds_exactly_the_files(scene, made, snapshot)
    forked = scene.make(scene.row("job-2"), beginning(made, snapshot))
    write(scene.top("job-2"), {"a.log": "3\n"})
    again = scene.snapshot(noted(scene.row("job-2"), forked))
    assert scene.stored(made.store, again.tree)["a.log"] == ("file", b"3\n")


def test_names_with_line_ends_and_bytes_that_are_no_text(
    scene: Scene, made: Made, row: Workspace
) -> None:
    names = [
        b"line\nend",
        b"tab\there",
        b'quote"\\',
        b"\xff\xfe",
        "ümläut".encode(),
        b" lead",
        b"-rf",
        b"git~1",
    ]
    for name in names:
        (scene.top() / os.fsdecode(name)).write_bytes(name)
    snapshot = scene.snapshot(row)
    assert snapshot.changed == len(names)
    assert holds_exactly_the_files(scene, made, snapshot)
    paths = scene.reader.changed_paths(made.store, str(made.base_tree), snapshot.tree)
    assert {changed.path for changed in paths} == {os.fsdecode(name) for name in names}
    scene.make(scene.row("job-2"), beginning(made, snapshot))
    assert files_in(scene.top("job-2")) == files_in(scene.top())


def test_head_follows_the_branch_and_its_commits_are_kept(scene: Scene, row: Workspace) -> None:
    first = commit(scene.top(), {"done.txt": "done\n"})
    assert scene.snapshot(row).head == first
    git(scene.top(), "commit", "--quiet", "--amend", "-m", "amended")
    second = scene.snapshot(row).head
    assert second == git(scene.top(), "rev-parse", "HEAD")
    assert git(scene.root, "rev-parse", "refs/nightherd/job-1/head") == second
    git(scene.top(), "checkout", "--quiet", "--detach", "HEAD~1")
    assert scene.snapshot(row).head == row.base_commit
    git(scene.root, "pack-refs", "--all")
    git(scene.top(), "switch", "--quiet", "nightherd/herder/job-1")
    assert scene.snapshot(row).head == second


def churn(top: Path, stop: threading.Event) -> None:
    """Change files as fast as possible: each appears, vanishes, and is a file, a directory or a link by turns."""
    place = top / "churn"
    for number in count():
        if stop.is_set():
            return
        for name in ("a", "b", "c"):
            path = place / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            match (number + ord(name)) % 3:
                case 0:
                    write(place, {f"{name}/inner": f"{number}\n"})
                case 1:
                    write(place, {name: f"{number}\n" * 500})
                case _:
                    path.symlink_to("/etc")


def test_files_that_change_meanwhile_never_fail_a_snapshot(
    scene: Scene, made: Made, row: Workspace
) -> None:
    (scene.top() / "churn").mkdir()
    stop = threading.Event()
    thread = threading.Thread(target=churn, args=(scene.top(), stop))
    thread.start()
    try:
        for _ in range(often(10, soak=500)):
            scene.snapshot(row)
    finally:
        stop.set()
        thread.join()
    assert holds_exactly_the_files(scene, made, scene.snapshot(row))


# What a snapshot cannot hold


def test_large_file_is_left_out_and_counted_in_every_snapshot(
    scene: Scene, made: Made, row: Workspace
) -> None:
    with (scene.top() / "huge").open("wb") as file:
        file.truncate(4 * 1024**3)
    for _ in range(2):
        snapshot = scene.snapshot(row)
        assert (snapshot.tree, snapshot.left_out) == (made.base_tree, ("huge",))
    (scene.top() / "huge").unlink()
    assert scene.snapshot(row).left_out == ()


def test_name_of_a_file_that_is_left_out_is_text(scene: Scene, row: Workspace) -> None:
    scene.policy = replace(scene.policy, largest_file=1)
    (scene.top() / os.fsdecode(b"\xff")).write_bytes(b"xx")
    assert scene.snapshot(row).left_out == ("\ufffd",)


def test_file_that_grows_too_large_stays_as_it_was(
    scene: Scene, made: Made, row: Workspace
) -> None:
    scene.policy = replace(scene.policy, largest_file=100)
    write(scene.top(), {"README.md": "x" * 101, "fits": "x" * 100})
    snapshot = scene.snapshot(row)
    held = scene.stored(made.store, snapshot.tree)
    assert snapshot.left_out == ("README.md",)
    assert (held["README.md"], held["fits"]) == (("file", b"# herd\n"), ("file", b"x" * 100))


def test_repository_below_is_left_out_and_named(scene: Scene, made: Made, row: Workspace) -> None:
    new_repository(scene.top() / "vendor" / "lib")
    write(scene.top(), {"vendor/own.txt": "own\n"})
    snapshot = scene.snapshot(row)
    assert snapshot.left_out == ("vendor/lib/",)
    assert "vendor/own.txt" in scene.stored(made.store, snapshot.tree)


def test_pipe_or_socket_in_the_place_of_a_file_leaves_it_as_it_was(
    scene: Scene, made: Made, row: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scene.top())  # the name of a socket may be 107 bytes long
    for name in ("README.md", "src/app.py"):
        Path(name).unlink()
    os.mkfifo("README.md")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("src/app.py")
        snapshot = scene.snapshot(row)
    assert snapshot.left_out == ("README.md", "src/app.py")
    assert snapshot.tree == made.base_tree


@pytest.mark.parametrize("name", [".gitignore", "src/.gitignore", ".gitattributes"])
def test_pipe_that_git_would_wait_for_is_an_error_that_names_it(
    scene: Scene, row: Workspace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(scan, "WATCH_S", 0.3)
    write(scene.top(), {"README.md": "changed, so that attributes are read\n"})
    os.mkfifo(scene.top() / name)
    with pytest.raises(WorkspaceError, match="git would wait for it for ever") as caught:
        scene.snapshot(row)
    assert (name in str(caught.value), caught.value.hint) == (True, "remove it")
    (scene.top() / name).unlink()
    assert scene.snapshot(row).changed == 1


# Damage


@pytest.mark.parametrize("damage", [b"", b"garbage", b"DIRC\0\0\0\2\0\0\xff\xff"])
def test_damaged_index_is_made_again(
    scene: Scene, made: Made, row: Workspace, damage: bytes
) -> None:
    write(scene.top(), {"new.txt": "new\n"})
    known = scene.snapshot(row)
    (scene.state / "workspaces" / "job-1" / "index").write_bytes(damage)
    assert scene.snapshot(row).tree == known.tree
    (scene.top() / "new.txt").unlink()
    assert scene.snapshot(row).tree == made.base_tree


@pytest.mark.parametrize("name", ["index", "last.json", "index.lock"])
def test_lost_or_stale_file_of_the_record_costs_only_time(
    scene: Scene, row: Workspace, name: str
) -> None:
    write(scene.top(), {"new.txt": "new\n"})
    known = scene.snapshot(row)
    path = scene.state / "workspaces" / "job-1" / name
    if path.exists():
        path.unlink()
    else:
        path.touch()
    assert scene.snapshot(row).tree == known.tree
    write(scene.top(), {"new.txt": "newer\n"})
    assert scene.snapshot(row).tree != known.tree


def test_workspace_without_a_directory_cannot_be_snapshotted(scene: Scene, row: Workspace) -> None:
    shutil.rmtree(scene.top())
    with pytest.raises(WorkspaceError, match="is not there"):
        scene.snapshot(row)


# What happens to the repository


def test_base_that_was_force_pushed_or_deleted_and_collected_harms_no_snapshot(
    scene: Scene, tmp_path: Path
) -> None:
    git(scene.root, "switch", "--quiet", "-c", "feature")
    commit(scene.root, {"feature.txt": "only here\n"})
    made = scene.make()
    row = noted(scene.row(), made)
    write(scene.top(), {"work.txt": "work\n"})
    snapshot = scene.snapshot(row)
    git(scene.root, "switch", "--quiet", "main")
    git(scene.root, "branch", "--quiet", "-D", "feature")
    # The agent leaves its base as well, and takes nothing of it along.
    git(scene.top(), "reset", "--quiet", "--hard", "main")
    scene.snapshot(row)
    git(scene.root, "reflog", "expire", "--expire=now", "--all")
    git(scene.root, "gc", "--quiet", "--prune=now")
    assert scene.stored(made.store, snapshot.tree)["feature.txt"] == ("file", b"only here\n")
    assert b"+work" in scene.reader.patch(made.store, str(made.base_tree), snapshot.tree)
    scene.make(scene.row("job-2"), beginning(made, snapshot))
    assert (scene.top("job-2") / "feature.txt").is_file()


def test_content_that_the_repository_forgets_is_kept_by_the_snapshot(
    scene: Scene, made: Made, row: Workspace
) -> None:
    write(scene.top(), {"staged/new.txt": "new\n"})
    git(scene.top(), "add", "staged")
    git(scene.top(), "write-tree")
    snapshot = scene.snapshot(row)
    git(scene.top(), "reset", "--quiet", "--hard")
    git(scene.root, "gc", "--quiet", "--prune=now")
    assert scene.stored(made.store, snapshot.tree)["staged/new.txt"] == ("file", b"new\n")


def test_commit_that_the_agent_amended_away_harms_no_snapshot(
    scene: Scene, made: Made, row: Workspace
) -> None:
    commit(scene.top(), {"a.txt": "a\n"})
    write(scene.top(), {"b.txt": "b\n"})
    snapshot = scene.snapshot(row)
    git(scene.top(), "reset", "--quiet", "--hard", "HEAD~1")
    scene.snapshot(row)
    git(scene.root, "reflog", "expire", "--expire=now", "--all")
    git(scene.root, "gc", "--quiet", "--prune=now")
    assert scene.stored(made.store, snapshot.tree).keys() >= {"a.txt", "b.txt", "src/app.py"}
    scene.make(scene.row("job-2"), beginning(made, snapshot))
    assert files_in(scene.top("job-2")).keys() >= {"a.txt", "b.txt", "src/app.py"}


def test_fork_that_left_the_commits_it_began_with_keeps_what_its_snapshots_need(
    scene: Scene, made: Made, row: Workspace
) -> None:
    commit(scene.top(), {"parent.txt": "of the parent\n"})
    first = scene.snapshot(row)
    forked = scene.make(scene.row("job-2"), beginning(made, first))
    write(scene.top("job-2"), {"own.txt": "own\n"})
    snapshot = scene.snapshot(noted(scene.row("job-2"), forked))
    for name in ("job-1", "job-2"):
        git(scene.top(name), "reset", "--quiet", "--hard", "main")
        scene.snapshot(noted(scene.row(name), forked))
    git(scene.root, "reflog", "expire", "--expire=now", "--all")
    git(scene.root, "gc", "--quiet", "--prune=now")
    assert "parent.txt" in scene.stored(made.store, snapshot.tree)


def test_commits_that_a_lost_directory_was_made_again_from_are_kept(
    scene: Scene, made: Made, row: Workspace
) -> None:
    commit(scene.top(), {"committed.txt": "never in a snapshot of the first directory\n"})
    shutil.rmtree(scene.top())
    scene.make(row)
    write(scene.top(), {"work.txt": "work\n"})
    snapshot = scene.snapshot(row)
    leave_and_collect(scene, row)
    assert scene.stored(made.store, snapshot.tree).keys() >= {"committed.txt", "work.txt"}


def test_base_is_kept_though_a_lost_directory_was_made_again_from_other_commits(
    scene: Scene,
) -> None:
    git(scene.root, "switch", "--quiet", "-c", "feature")
    commit(scene.root, {"feature.txt": "only here\n"})
    made = scene.make()
    row = noted(scene.row(), made)
    write(scene.top(), {"work.txt": "work\n"})
    snapshot = scene.snapshot(row)
    git(scene.root, "switch", "--quiet", "main")
    git(scene.root, "branch", "--quiet", "-D", "feature")
    git(scene.top(), "reset", "--quiet", "--hard", "main")
    commit(scene.top(), {"other.txt": "other\n"})
    shutil.rmtree(scene.top())
    scene.make(row)
    leave_and_collect(scene, row)
    assert "feature.txt" in scene.stored(made.store, snapshot.tree)


def leave_and_collect(scene: Scene, row: Workspace) -> None:
    """The agent goes back to `main`, and the repository forgets what nothing refers to."""
    git(scene.top(), "reset", "--quiet", "--hard", "main")
    scene.snapshot(row)
    git(scene.root, "reflog", "expire", "--expire=now", "--all")
    git(scene.root, "gc", "--quiet", "--prune=now")


# Line endings


def crlf_scene(tmp_path: Path) -> tuple[Scene, Made]:
    files = {".gitattributes": "*.bat text eol=crlf\n* text=auto\n", "a.bat": "a\n", "b.txt": "b\n"}
    scene = Scene(new_repository(tmp_path / "repo", files))
    return scene, scene.make()


@pytest.mark.parametrize("is_unsettled", [False, True])
def test_touched_file_with_converted_line_endings_is_unchanged(
    tmp_path: Path, is_unsettled: bool
) -> None:
    scene, made = crlf_scene(tmp_path)
    for _ in range(2):
        record = Record(scene.state, "job-1")
        record.remember(made.snapshot.tree, made.snapshot.head, is_unsettled=is_unsettled)
        os.utime(scene.top() / "a.bat", (0, 0))
        snapshot = scene.snapshot(noted(scene.row(), made))
        assert (snapshot.tree, snapshot.changed) == (made.base_tree, 0)


def test_changed_line_endings_are_held_byte_for_byte(tmp_path: Path) -> None:
    scene, made = crlf_scene(tmp_path)
    write(scene.top(), {"a.bat": b"x\r\ny\n", "b.txt": b"b\r\n", "c.txt": b"c\r\n"})
    for _ in range(2):
        snapshot = scene.snapshot(noted(scene.row(), made))
        held = scene.stored(made.store, snapshot.tree)
        assert {name: held[name][1] for name in ("a.bat", "b.txt", "c.txt")} == {
            "a.bat": b"x\r\ny\n", "b.txt": b"b\r\n", "c.txt": b"c\r\n",
        }  # fmt: skip
