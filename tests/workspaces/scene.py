"""Scene: a repository of a user, a state directory, and workspaces made from it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy, WorkspaceScope
from nightherd.model.workspaces.snapshot import Snapshot
from nightherd.model.workspaces.workspace import Workspace, WorkspaceId, WorkspaceStatus
from nightherd.ports import BeginsWith, Made
from nightherd.workspaces.comparing import GitSnapshots
from nightherd.workspaces.files import LocalWorkspaceFiles

AT = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = {"README.md": "# herd\n", "src/app.py": "print('moo')\n", "src/lib/cow.py": "legs = 4\n"}
File = tuple[str, bytes]
"""What it is (`file`, `program` or `link`), and its content."""


def git(directory: Path, *arguments: str | bytes, **options: Any) -> str:
    """Run git as the user would; return what it prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=directory, check=True, capture_output=True, **options
    )
    return os.fsdecode(done.stdout).removesuffix("\n")


def write(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, with the directories they need."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def commit(directory: Path, files: Mapping[str, str | bytes], message: str = "work") -> str:
    """Commit files; return the commit."""
    write(directory, files)
    git(directory, "add", "--all", *files)
    git(directory, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(directory, "rev-parse", "HEAD")


def new_repository(
    directory: Path, files: Mapping[str, str | bytes] = FIRST, *options: str
) -> Path:
    """A repository with one commit on `main`."""
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet", "--initial-branch=main", *options)
    write(directory / ".git", {"info/exclude": ".nightherd*\n"})
    commit(directory, files, "first")
    return directory


def files_in(directory: Path, *, without: tuple[str, ...] = (".git",)) -> dict[str, File]:
    """Every file below a directory, but not what is called one of `without`."""
    seen: dict[str, File] = {}
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        if entry.name in without:
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            below = files_in(Path(entry.path), without=without)
            seen.update({f"{entry.name}/{name}": file for name, file in below.items()})
        elif stat.S_ISLNK(mode):
            seen[entry.name] = "link", os.fsencode(Path(entry.path).readlink())
        elif stat.S_ISREG(mode):
            kind = "program" if mode & stat.S_IXUSR else "file"
            seen[entry.name] = kind, Path(entry.path).read_bytes()
    return seen


def user_state(repository: Path) -> dict[str, Any]:
    """All that is the user's: refs that are not ours, index, stash, reflog of HEAD, configuration and files."""
    shown = git(repository, "for-each-ref", "--format=%(refname) %(objectname)").split("\n")
    common = repository / ".git"
    return {
        "refs": [
            ref for ref in shown if not ref.startswith(("refs/heads/nightherd/", "refs/nightherd/"))
        ],
        "HEAD": (common / "HEAD").read_bytes(),
        "index": (common / "index").read_bytes(),
        "reflog": (common / "logs" / "HEAD").read_bytes(),
        "stash": git(repository, "stash", "list"),
        "config": (common / "config").read_bytes(),
        "files": files_in(repository, without=(".git", ".nightherd", ".nightherd-workspaces")),
    }


@dataclass
class Scene:
    """A user's directory with a state directory in it."""

    root: Path
    policy: WorkspacePolicy = field(
        default_factory=lambda: WorkspacePolicy(mode=WorkspaceMode.WORKTREE)
    )

    @property
    def state(self) -> Path:
        return self.root / ".nightherd"

    @property
    def files(self) -> LocalWorkspaceFiles:
        return LocalWorkspaceFiles(self.state)

    @property
    def reader(self) -> GitSnapshots:
        return GitSnapshots(self.state)

    def row(self, name: str = "job-1", **more: Any) -> Workspace:
        """The row of a workspace that is to be made."""
        given = {"mode": self.policy.mode, "root": str(self.root), **more}
        return Workspace(
            id=WorkspaceId(name),
            agent="herder",
            scope=WorkspaceScope.JOB,
            status=WorkspaceStatus.MAKING,
            created_at=AT,
            last_used_at=AT,
            **given,
        )

    def make(self, row: Workspace | None = None, begins_with: BeginsWith | None = None) -> Made:
        return anyio.run(self.files.make, row or self.row(), self.policy, begins_with)

    def snapshot(self, row: Workspace | None = None) -> Snapshot:
        return anyio.run(self.files.snapshot, row or self.row(), self.policy)

    def remove(self, row: Workspace | None = None) -> None:
        anyio.run(self.files.remove, row or self.row())

    def top(self, name: str = "job-1") -> Path:
        return self.root / ".nightherd-workspaces" / name

    def stored(self, store: str, tree: str) -> dict[str, File]:
        """What a snapshot holds."""
        where = self.state / "snapshots" / f"{store}.git"
        kinds = {"100644": "file", "100755": "program", "120000": "link"}
        seen = {}
        for line in git(where, "ls-tree", "-r", "-z", tree).split("\0")[:-1]:
            meta, _, path = line.partition("\t")
            mode, kind, blob = meta.split(" ")
            if kind == "blob":
                content = subprocess.run(
                    ["git", "cat-file", "blob", blob], cwd=where, check=True, capture_output=True
                )
                seen[path] = kinds[mode], content.stdout
        return seen


def noted(row: Workspace, made: Made) -> Workspace:
    """The row as the engine records it once the workspace is made."""
    return replace(
        row,
        status=WorkspaceStatus.READY,
        store=made.store,
        prefix=made.prefix,
        branch=made.branch,
        base=made.base,
        base_commit=made.base_commit,
        base_tree=made.base_tree,
        tree=made.snapshot.tree,
        head=made.snapshot.head,
    )


def beginning(made: Made, snapshot: Snapshot) -> BeginsWith:
    """A fork's beginning: a snapshot of a workspace."""
    return BeginsWith(
        store=made.store,
        tree=snapshot.tree,
        head=snapshot.head,
        base=made.base,
        base_commit=made.base_commit,
        base_tree=made.base_tree,
    )


def changed_workspace(scene: Scene) -> tuple[Made, Snapshot]:
    """Make a workspace, change its files in every way, and take a snapshot."""
    made = scene.make()
    top = scene.top()
    write(top, {"src/app.py": "print('baa')\n", "new/file.txt": "new\n", ".env.d/x": b"\xff\x00"})
    (top / "README.md").unlink()
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("src/app.py")
    return made, scene.snapshot(noted(scene.row(), made))
