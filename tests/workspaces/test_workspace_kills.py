"""A process that makes, snapshots or removes a workspace is killed at every point; the next one gives a whole result."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import BeginsWith
from nightherd.testing.fork_server import Ended, ForkServer
from nightherd.workspaces import record
from soak import often
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
from workspaces.workspace_trials import ACT, ACT_AS_NOBODY, NOBODY

LEAST_MAKING, LEAST_SNAPSHOT, LEAST_REMOVING = 5, 5, 5
"""Points that a run passes at least; fewer, and the kills would prove nothing."""

POINTS = {
    "commits.added",
    "commits.branch_moved",
    "commits.copied",
    "commits.packed",
    "remove.begun",
    "remove.branch_deleted",
    "remove.deleted",
    "remove.forgotten",
    "remove.renamed",
    "remove.unregistered",
    "snapshot.added",
    "snapshot.head_kept",
    "snapshot.rebuilt",
    "snapshot.remembered",
    "snapshot.removed",
    "snapshot.scanned",
    "snapshot.settled",
    "snapshot.written",
    "workspace.begun",
    "workspace.checked_out",
    "workspace.commits_kept",
    "workspace.copied",
    "workspace.filled",
    "workspace.indexed",
    "workspace.made",
    "workspace.registered",
    "workspace.restored",
}
"""Where processes are killed: every point that making, snapshotting and removing pass."""


@pytest.fixture(scope="module")
def server(fork_server: ForkServer) -> ForkServer:
    fork_server.load("workspaces.workspace_trials")
    return fork_server


def order(scene: Scene, verb: str, row: Workspace, **more: Any) -> dict[str, Any]:
    values = {"row": row, "policy": scene.policy, **more}
    return {"verb": verb, "state": str(scene.state), **msgspec.to_builtins(values)}


class World:
    """A scene of its own for every kill."""

    def __init__(self, folder: Path, policy: WorkspacePolicy) -> None:
        self._folder, self._policy, self._number = folder, policy, 0

    def scene(self) -> Scene:
        self._number += 1
        return Scene(new_repository(self._folder / str(self._number)), self._policy)


def kill_everywhere(
    server: ForkServer,
    prepare: Callable[[], tuple[Scene, dict[str, Any]]],
    check: Callable[[Scene], None],
) -> int:
    """Kill the same at each of its points; `check` after each. Returns how many there were."""
    scene, whole = prepare()
    ended = server.run(ACT, whole)
    assert ended.status == 0, ended.error
    check(scene)
    points = [line for line in ended.said if "." in line]
    assert set(points) <= POINTS
    for nth in range(1, len(points) + 1):
        scene, whole = prepare()
        before = user_state(scene.root)
        ended = server.run(ACT, {**whole, "nth": nth})
        assert ended.status == -signal.SIGKILL, (nth, points, ended.error)
        assert user_state(scene.root) == before, (nth, points[nth - 1])
        check(scene)
        assert user_state(scene.root) == before, (nth, points[nth - 1])
    return len(points)


def nothing_is_left_over(scene: Scene) -> None:
    names = {path.name for path in (scene.root / ".nightherd-workspaces").iterdir()}
    assert names - {".gitignore", ".repairing"} <= {"job-0", "job-1"}
    worktrees = git(scene.root, "worktree", "list", "--porcelain").count("worktree ")
    assert worktrees == 1 + len(list((scene.root / ".git").glob("worktrees/*")))


@pytest.mark.parametrize(
    "mode", [WorkspaceMode.WORKTREE, WorkspaceMode.CLONE, WorkspaceMode.COPY, WorkspaceMode.EMPTY]
)
def test_making_is_finished_by_the_next_process(
    tmp_path: Path, server: ForkServer, mode: WorkspaceMode
) -> None:
    world = World(tmp_path, WorkspacePolicy(mode=mode))

    def prepare() -> tuple[Scene, dict[str, Any]]:
        scene = world.scene()
        return scene, order(scene, "make", scene.row())

    def check(scene: Scene) -> None:
        made = scene.make()
        expected = (
            {}
            if mode is WorkspaceMode.EMPTY
            else files_in(scene.root, without=(".git", ".nightherd", ".nightherd-workspaces"))
        )
        assert files_in(scene.top()) == expected
        write(scene.top(), {"new.txt": "new\n"})
        snapshot = scene.snapshot(noted(scene.row(), made))
        assert scene.stored(made.store, snapshot.tree) == files_in(scene.top())
        assert made.base_tree is not None
        if mode.has_branch:
            assert git(scene.top(), "status", "--porcelain") == "?? new.txt"
            assert made.base_commit == git(scene.root, "rev-parse", "main")
        nothing_is_left_over(scene)

    assert kill_everywhere(server, prepare, check) >= LEAST_MAKING


@pytest.mark.parametrize("mode", [WorkspaceMode.WORKTREE, WorkspaceMode.CLONE, WorkspaceMode.COPY])
@pytest.mark.parametrize("is_again", [False, True])
def test_making_from_a_snapshot_is_finished_by_the_next_process(
    tmp_path: Path, server: ForkServer, mode: WorkspaceMode, is_again: bool
) -> None:
    world = World(tmp_path, WorkspacePolicy(mode=mode))
    begun: dict[Path, tuple[Workspace, BeginsWith]] = {}
    name = "job-0" if is_again else "job-1"

    def prepare() -> tuple[Scene, dict[str, Any]]:
        scene = world.scene()
        row = scene.row("job-0")
        made = scene.make(row)
        write(scene.top("job-0"), {"README.md": "changed\n", "deep/new.txt": "new\n"})
        (scene.top("job-0") / "src" / "app.py").unlink()
        snapshot = scene.snapshot(noted(row, made))
        shutil.copytree(
            scene.top("job-0"), scene.root.with_name(f"{scene.root.name}-expected"), symlinks=True
        )
        if is_again:  # its directory was lost
            shutil.rmtree(scene.top("job-0"))
        row = noted(row, made) if is_again else scene.row("job-1")
        begun[scene.root] = row, beginning(made, snapshot)
        return scene, order(scene, "make", row, begins_with=begun[scene.root][1])

    def check(scene: Scene) -> None:
        row, begins_with = begun[scene.root]
        made = scene.make(row, begins_with)
        assert files_in(scene.top(name)) == files_in(
            scene.root.with_name(f"{scene.root.name}-expected")
        )
        assert (made.snapshot.tree, made.base_tree) == (begins_with.tree, begins_with.base_tree)
        nothing_is_left_over(scene)

    assert kill_everywhere(server, prepare, check) >= LEAST_MAKING


@pytest.mark.parametrize("mode", [WorkspaceMode.WORKTREE, WorkspaceMode.CLONE])
def test_snapshot_is_taken_by_the_next_process(
    tmp_path: Path, server: ForkServer, mode: WorkspaceMode
) -> None:
    world = World(tmp_path, WorkspacePolicy(mode=mode))
    rows: dict[Path, Workspace] = {}

    def prepare() -> tuple[Scene, dict[str, Any]]:
        scene = world.scene()
        rows[scene.root] = noted(scene.row(), scene.make())
        commit(scene.top(), {"done.txt": "done\n"})
        write(scene.top(), {"README.md": "changed\n", "deep/new.txt": "new\n"})
        (scene.top() / "src" / "app.py").unlink()
        return scene, order(scene, "snapshot", rows[scene.root])

    def check(scene: Scene) -> None:
        row = rows[scene.root]
        snapshot = scene.snapshot(row)
        assert scene.stored(str(row.store), snapshot.tree) == files_in(scene.top())
        assert snapshot.head == git(scene.top(), "rev-parse", "HEAD")
        assert snapshot.head == git(scene.root, "rev-parse", "refs/nightherd/job-1/head")
        assert snapshot.head == git(scene.root, "rev-parse", str(row.branch))
        assert git(scene.root, "fsck", "--connectivity-only", "--no-dangling") == ""
        write(scene.top(), {"later.txt": "later\n"})
        assert scene.stored(str(row.store), scene.snapshot(row).tree) == files_in(scene.top())

    assert kill_everywhere(server, prepare, check) >= LEAST_SNAPSHOT


@pytest.mark.parametrize("mode", [WorkspaceMode.WORKTREE, WorkspaceMode.CLONE, WorkspaceMode.COPY])
def test_removing_is_finished_by_the_next_process(
    tmp_path: Path, server: ForkServer, mode: WorkspaceMode
) -> None:
    world = World(tmp_path, WorkspacePolicy(mode=mode))
    rows: dict[Path, Workspace] = {}

    def prepare() -> tuple[Scene, dict[str, Any]]:
        scene = world.scene()
        rows[scene.root] = noted(scene.row(), scene.make())
        write(scene.top(), {"new.txt": "new\n"})
        scene.snapshot(rows[scene.root])
        return scene, order(scene, "remove", rows[scene.root])

    def check(scene: Scene) -> None:
        scene.remove(rows[scene.root])
        assert [path.name for path in (scene.root / ".nightherd-workspaces").iterdir()] == [
            ".gitignore"
        ]
        assert list((scene.state / "workspaces").iterdir()) == []
        assert git(scene.root, "branch", "--list", "nightherd/*") == ""
        assert git(scene.root, "worktree", "list").count("\n") == 0

    least = LEAST_REMOVING if mode.has_branch else 3
    assert kill_everywhere(server, prepare, check) >= least


# Git itself is killed, or goes on alone


def shell(folder: Path, text: str) -> str:
    program = folder / "git-shim"
    program.write_text(f'#!/bin/sh\n{text}\nexec git "$@"\n')
    program.chmod(0o755)
    return str(program)


COMMANDS = ["worktree", "read-tree", "update-index", "write-tree", "update-ref"]


@pytest.mark.parametrize("command", COMMANDS)
def test_git_that_is_killed_while_it_writes_is_tried_again(
    tmp_path: Path, scene: Scene, server: ForkServer, command: str
) -> None:
    # A file of no size: the kernel kills git at the first byte that it writes, with its locks in place.
    program = shell(tmp_path, f'[ "$1" = {command} ] && ulimit -f 0')
    verb = "snapshot" if command in ("update-index", "write-tree") else "make"
    row = noted(scene.row(), scene.make()) if verb == "snapshot" else scene.row()
    if verb == "snapshot":
        write(scene.top(), {"new.txt": "new\n"})
    before = user_state(scene.root)
    ended = server.run(ACT, order(scene, verb, row, program=program))
    assert any(line.startswith("refused: ") for line in ended.said), (ended.said, ended.error)
    assert user_state(scene.root) == before
    made = scene.make(row)
    write(scene.top(), {"new.txt": "new\n"})
    snapshot = scene.snapshot(noted(scene.row(), made))
    assert scene.stored(made.store, snapshot.tree) == files_in(scene.top())


def test_git_of_a_killed_process_is_waited_for(
    tmp_path: Path, scene: Scene, server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    program = shell(tmp_path, f'[ "$1" = read-tree ] && read go < {gate}')
    (trial,) = server.begin(ACT, order(scene, "make", scene.row(), program=program))
    with gate.open("w") as opened:  # opened by both sides: git stands at the gate
        trial.send(signal.SIGKILL)
        assert trial.wait().status == -signal.SIGKILL
        with monkeypatch.context() as patch:
            patch.setattr(record, "PATIENCE_S", 0.2)
            with pytest.raises(WorkspaceError, match="another process works on") as caught:
                scene.make()
        assert caught.value.can_pass
        opened.write("go\n")
    scene.make()
    assert git(scene.top(), "status", "--porcelain") == ""


def test_lock_whose_file_was_removed_meanwhile_is_taken_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = record.Record(scene.state, "job-1")
    acquired, done = threading.Event(), threading.Event()

    def wait_for_it() -> None:
        with record.Record(scene.state, "job-1").locked():
            acquired.set()
            done.wait()

    thread = threading.Thread(target=wait_for_it)
    with held.locked():
        thread.start()
        held.forget()
    assert acquired.wait(60)
    monkeypatch.setattr(record, "PATIENCE_S", 0.2)
    with pytest.raises(WorkspaceError, match="another process works on"), held.locked():
        pass
    done.set()
    thread.join()


# Several at once


def test_workspaces_of_one_repository_are_made_and_removed_at_once(
    scene: Scene, server: ForkServer
) -> None:
    before = user_state(scene.root)
    rows = [scene.row(f"job-{number}") for number in range(often(6, soak=40))]
    for verb in ("make", "snapshot", "remove", "make"):
        orders = [order(scene, verb, row) for row in rows]
        for ended in server.run_all(ACT, orders):
            assert ended.status == 0, ended.error
            assert not [line for line in ended.said if line.startswith("refused")], ended.said
    for row in rows:
        assert git(scene.top(row.id), "status", "--porcelain") == ""
    assert user_state(scene.root) == before


def test_one_workspace_is_made_once_by_processes_that_race(
    scene: Scene, server: ForkServer
) -> None:
    orders = [order(scene, "make", scene.row()) for _ in range(4)]
    said = []
    for ended in server.run_all(ACT, orders):
        assert ended.status == 0, ended.error
        said += ended.said
    assert said.count("workspace.made") == 1
    assert git(scene.top(), "status", "--porcelain") == ""


# Permissions


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that every user may enter; the usual ones are root's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)
        for below, _, _ in os.walk(folder):
            Path(below).chmod(0o700)


def give_away(folder: Path) -> None:
    """Let the files belong to the user that the next process runs as."""
    if os.geteuid() == 0:
        for below, folders, names in os.walk(folder):
            for name in (*folders, *names):
                os.chown(Path(below) / name, NOBODY, NOBODY, follow_symlinks=False)


def test_read_only_directories_are_removed(open_folder: Path, server: ForkServer) -> None:
    scene = Scene(new_repository(open_folder / "repo"))
    row = noted(scene.row(), scene.make())
    write(scene.top(), {"locked/deep/file": "x\n"})
    (scene.top() / "locked" / "link").symlink_to(scene.root)
    for folder in ("locked/deep", "locked", "src"):
        (scene.top() / folder).chmod(0o500)
    before = stat.S_IMODE(scene.root.stat().st_mode)
    give_away(open_folder)
    ended = server.run(ACT_AS_NOBODY, order(scene, "remove", row))
    assert ended.status == 0, ended.error
    assert not scene.top().exists()
    assert not scene.top().with_name("job-1.removing").exists()
    assert stat.S_IMODE(scene.root.stat().st_mode) == before


def test_what_cannot_be_read_is_left_out_and_stays_as_it_was(
    open_folder: Path, server: ForkServer
) -> None:
    scene = Scene(new_repository(open_folder / "repo"))
    made = scene.make()
    row = noted(scene.row(), made)
    top = scene.top()
    write(
        top,
        {
            "README.md": "changed, but not readable\n",
            "hidden.txt": "x\n",
            "locked/file": "x\n",
            "ok": "ok\n",
        },
    )
    for path in (top / "README.md", top / "hidden.txt", top / "locked", top / "src" / "lib"):
        path.chmod(0)
    give_away(open_folder)
    ended: Ended = server.run(ACT_AS_NOBODY, order(scene, "snapshot", row))
    assert ended.status == 0, ended.error
    left_out = {
        line.removeprefix("left out ") for line in ended.said if line.startswith("left out ")
    }
    assert left_out == {"README.md", "hidden.txt", "locked/", "src/lib/", "src/lib/cow.py"}
    tree = next(line.removeprefix("tree ") for line in ended.said if line.startswith("tree "))
    where = scene.state / "snapshots" / f"{made.store}.git"
    safe = ("-c", f"safe.directory={where}")
    assert git(where, *safe, "ls-tree", "-r", "--name-only", tree).split() == [
        "README.md", "ok", "src/app.py", "src/lib/cow.py",
    ]  # fmt: skip
    assert git(where, *safe, "cat-file", "blob", f"{tree}:README.md") == "# herd"
