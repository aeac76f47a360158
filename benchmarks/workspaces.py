"""What a workspace costs in a repository of 20,000 files, beside plain git in the same run.

Making one is measured beside `git worktree add`, a snapshot without changes beside `git status` in the same worktree,
and a snapshot of one changed file beside `git add` and `git write-tree`. By turns, each from a disk at rest; the least
of each counts. Detail: how long a fork from a snapshot takes, and removing a workspace.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
from anyio import to_thread

from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy, WorkspaceScope
from nightherd.model.workspaces.workspace import Workspace, WorkspaceId, WorkspaceStatus
from nightherd.ports import BeginsWith
from nightherd.workspaces.files import LocalWorkspaceFiles

FOLDERS, FILES = 400, 50
ROUNDS = 10
LOOKS = 25
POLICY = WorkspacePolicy(mode=WorkspaceMode.WORKTREE)
AT = datetime(2026, 1, 1, tzinfo=UTC)
IDENTITY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Bench" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "bench@example.invalid" for who in ("AUTHOR", "COMMITTER")},
}


def git(directory: Path, *arguments: str) -> None:
    """Plain git, with its defaults."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(directory), **IDENTITY}
    subprocess.run(
        ["git", *arguments], cwd=directory, env=variables, check=True, stdout=subprocess.DEVNULL
    )


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def new_repository(root: Path) -> Path:
    """Files of some lines each, in directories three deep."""
    repository = root / "repository"
    for folder in range(FOLDERS):
        place = repository / f"area{folder % 20}" / f"module{folder}"
        place.mkdir(parents=True)
        for number in range(FILES):
            text = "".join(f"line {line} of {folder}/{number}\n" for line in range(20))
            (place / f"file{number}.py").write_text(text)
    git(repository, "init", "--quiet")
    git(repository, "config", "gc.auto", "0")  # not beside what is measured
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "everything")
    git(repository, "gc", "--quiet")
    return repository


def row(repository: Path, name: str) -> Workspace:
    return Workspace(
        id=WorkspaceId(name),
        agent="bench",
        mode=WorkspaceMode.WORKTREE,
        scope=WorkspaceScope.JOB,
        status=WorkspaceStatus.MAKING,
        root=str(repository),
        created_at=AT,
        last_used_at=AT,
    )


class Bench:
    """One repository, our workspaces of it, and plain worktrees."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repository = new_repository(root)
        self.files = LocalWorkspaceFiles(root / "state")

    def make(self, name: str, begins_with: BeginsWith | None = None) -> float:
        """Seconds of making a workspace."""
        workspace = row(self.repository, name)
        return seconds(lambda: anyio.run(self.files.make, workspace, POLICY, begins_with))

    def remove(self, name: str) -> float:
        """Seconds of removing it."""
        return seconds(lambda: anyio.run(self.files.remove, row(self.repository, name)))

    def add_worktree(self, name: str) -> float:
        """Seconds of plain `git worktree add`."""
        place = str(self.root / "plain" / name)
        return seconds(
            lambda: git(self.repository, "worktree", "add", "--quiet", "-b", f"plain-{name}", place)
        )

    def top(self, name: str) -> Path:
        return self.root / "state-workspaces" / name


def report_making(bench: Bench) -> None:
    """Makes as many of both, by turns. None is removed meanwhile: making files is slow where some were just deleted."""
    ours, plain = list[float](), list[float]()
    for number in range(ROUNDS):
        os.sync()
        ours.append(bench.make(f"made-{number}"))
        os.sync()
        plain.append(bench.add_worktree(str(number)))
    print(f"making: {min(ours) * 1e3:.0f} ms, git worktree add {min(plain) * 1e3:.0f} ms")
    ratio = min(ours) / min(plain)
    print(f"making a worktree of 20,000 files against git worktree add: {ratio:.2f}x (limit 1.2x)")


async def snapshot_seconds(bench: Bench, name: str) -> float:
    begin = time.perf_counter()
    await bench.files.snapshot(row(bench.repository, name), POLICY)
    return time.perf_counter() - begin


async def report_snapshots(bench: Bench) -> None:
    """In one worktree, by turns with git's own; the first of each settles its index and is not counted."""
    name = "looked-at"
    workspace = row(bench.repository, name)
    made = await bench.files.make(workspace, POLICY)
    top = bench.top(name)
    # Until the files are older than the index, as they are in any turn but the first.
    await anyio.sleep(1.1)
    await snapshot_seconds(bench, name)
    await to_thread.run_sync(git, top, "status")
    ours, plain = list[float](), list[float]()
    for _ in range(LOOKS):
        ours.append(await snapshot_seconds(bench, name))
        plain.append(seconds(lambda: git(top, "status")))
    print(
        f"snapshot without changes: {min(ours) * 1e3:.1f} ms, git status {min(plain) * 1e3:.1f} ms"
    )
    ratio = min(ours) / min(plain)
    print(f"snapshot without changes in 20,000 files against git status: {ratio:.2f}x (limit 2x)")
    changed, added = list[float](), list[float]()
    path = top / "area1" / "module1" / "file1.py"
    for number in range(LOOKS):
        path.write_text(f"changed {number}\n")
        changed.append(await snapshot_seconds(bench, name))
        path.write_text(f"changed again {number}\n")
        added.append(
            seconds(lambda: git(top, "add", "--all")) + seconds(lambda: git(top, "write-tree"))
        )
    print(
        f"snapshot of one changed file: {min(changed) * 1e3:.1f} ms, git add and write-tree {min(added) * 1e3:.1f} ms"
    )
    ratio = min(changed) / min(added)
    print(f"snapshot of one changed file against git add and write-tree: {ratio:.2f}x")
    last = await bench.files.snapshot(workspace, POLICY)
    begins_with = BeginsWith(
        store=made.store, tree=last.tree, head=last.head, base=made.base,
        base_commit=made.base_commit, base_tree=made.base_tree,
    )  # fmt: skip
    begin = time.perf_counter()
    await bench.files.make(row(bench.repository, "fork"), POLICY, begins_with)
    print(f"fork from a snapshot: {(time.perf_counter() - begin) * 1e3:.0f} ms")


def main() -> None:
    """Prints every time and ratio."""
    if shutil.which("git") is None:
        raise SystemExit("workspaces need git")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        report_making(bench)
        anyio.run(report_snapshots, bench)
        print(f"removing: {bench.remove('made-0') * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
