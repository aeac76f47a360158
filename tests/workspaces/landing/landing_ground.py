"""Ground: a repository of a user, workspaces made from it, and their changes brought home."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import anyio
from msgspec.structs import replace as changed

from nightherd.host.system import SystemClock, random_text
from nightherd.model.ids import JobId
from nightherd.model.workspaces.policy import (
    CloneTerms,
    WorkspaceMode,
    WorkspacePolicy,
    WorkspaceScope,
)
from nightherd.model.workspaces.workspace import Workspace, WorkspaceId, WorkspaceStatus
from nightherd.ports import LandingResult, Probe, Work, no_probe
from nightherd.workspaces.files import LocalWorkspaceFiles
from nightherd.workspaces.git import Git
from nightherd.workspaces.landing.local import LocalLanding

AT = datetime(2026, 11, 18, 3, tzinfo=UTC)
TEXT = "".join(f"line {number}\n" for number in range(1, 21))
"""Long enough that changes at both ends do not touch."""


def git(directory: Path, *arguments: str | Path, data: bytes | None = None) -> str:
    """Run git as the user does."""
    done = subprocess.run(
        ["git", "-c", "commit.gpgSign=false", *arguments],
        cwd=directory,
        input=data,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return os.fsdecode(done.stdout).removesuffix("\n")


def make_repository(directory: Path, files: Mapping[str, str] | None = None) -> Path:
    """A repository with one commit on main."""
    directory.mkdir(parents=True)
    git(directory, "init", "-q", "-b", "main")
    write(directory, files or {"a.txt": TEXT, "b.txt": TEXT, "dir/c.txt": TEXT})
    commit(directory, "first")
    return directory


def write(directory: Path, files: Mapping[str, str | bytes | None]) -> None:
    """Write files; None deletes one."""
    for name, content in files.items():
        path = directory / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def commit(directory: Path, message: str) -> str:
    """Commit everything as the user does."""
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "--allow-empty", "-m", message)
    return git(directory, "rev-parse", "HEAD")


def dump(directory: Path, *, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Everything below a directory, as text that differs when anything differs; `without` are paths left out."""
    entries: dict[str, str] = {}
    for folder, folders, names in os.walk(directory):
        for name in (*folders, *names):
            path = Path(folder, name)
            relative = str(path.relative_to(directory))
            if any(
                relative == left_out or relative.startswith(f"{left_out}/") for left_out in without
            ):
                continue
            status = path.lstat()
            kind = f"{stat.S_IFMT(status.st_mode):o} {stat.S_IMODE(status.st_mode):o}"
            if path.is_symlink():
                entries[relative] = f"{kind} -> {path.readlink()}"
            elif path.is_file():
                entries[relative] = f"{kind} {sha256(path.read_bytes()).hexdigest()}"
            else:
                entries[relative] = kind
    return entries


@dataclass(frozen=True)
class Ground:
    """A fleet's state directory beside a repository `project` that has `main` checked out."""

    folder: Path
    project: Path
    probe: Probe = no_probe
    program: str = "git"
    policy: WorkspacePolicy = field(
        default_factory=lambda: WorkspacePolicy(mode=WorkspaceMode.WORKTREE)
    )

    @property
    def state(self) -> Path:
        return self.folder / "fleet" / ".nightherd"

    @property
    def files(self) -> LocalWorkspaceFiles:
        return LocalWorkspaceFiles(self.state)

    @property
    def landing(self) -> LocalLanding:
        return LocalLanding(
            self.state,
            git=Git(program=self.program),
            clock=SystemClock(),
            random_text=random_text,
            probe=self.probe,
        )

    def with_mode(self, mode: WorkspaceMode, **terms: object) -> Ground:
        return replace(self, policy=changed(self.policy, mode=mode, **terms))

    # Workspaces

    def make(self, name: str = "job-1", root: Path | None = None) -> Workspace:
        """A workspace as the engine has it on record once it is made."""
        workspace = Workspace(
            id=WorkspaceId(name),
            agent="coder",
            mode=self.policy.mode,
            scope=WorkspaceScope.JOB,
            status=WorkspaceStatus.MAKING,
            root=str(root or self.project),
            created_at=AT,
            last_used_at=AT,
            job_id=JobId(name),
        )
        made = anyio.run(self.files.make, workspace, self.policy)
        return changed(
            workspace,
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

    def directory(self, workspace: Workspace) -> Path:
        return Path(self.files.directory(workspace))

    def snapshot(self, workspace: Workspace) -> Workspace:
        """The workspace with its last snapshot, as the engine has it when a job has ended."""
        taken = anyio.run(self.files.snapshot, workspace, self.policy)
        return changed(workspace, tree=taken.tree, head=taken.head)

    def worked(
        self, files: Mapping[str, str | bytes | None], name: str = "job-1", root: Path | None = None
    ) -> Workspace:
        """A workspace in which an agent has written files."""
        workspace = self.make(name, root)
        write(self.directory(workspace), files)
        return self.snapshot(workspace)

    # Landings

    def apply(
        self, workspace: Workspace, *, before: str | None = None, is_dry_run: bool = False
    ) -> LandingResult:
        assert workspace.base_tree is not None
        assert workspace.tree is not None
        first, last = before or workspace.base_tree, workspace.tree
        return anyio.run(lambda: self.landing.apply(workspace, first, last, is_dry_run=is_dry_run))

    def merge(
        self,
        workspace: Workspace,
        *,
        into: str | None = None,
        is_fast_forward: bool = True,
        is_dry_run: bool = False,
        is_last: bool = True,
    ) -> LandingResult:
        work = self.work(workspace, is_last=is_last)
        return anyio.run(
            lambda: self.landing.merge(
                workspace, work, into=into, is_fast_forward=is_fast_forward, is_dry_run=is_dry_run
            )
        )

    def push(
        self,
        workspace: Workspace,
        *,
        remote: str | None = None,
        login: CloneTerms | None = None,
        is_forced: bool = False,
        is_dry_run: bool = False,
    ) -> LandingResult:
        work = self.work(workspace)
        return anyio.run(
            lambda: self.landing.push(
                workspace,
                work,
                remote=remote,
                login=login,
                is_forced=is_forced,
                is_dry_run=is_dry_run,
            )
        )

    def work(self, workspace: Workspace, *, is_last: bool = True) -> Work:
        assert workspace.tree is not None
        message = f"Do the work\n\nnightherd job {workspace.job_id}\n"
        return Work(
            tree=workspace.tree, head=workspace.head, is_last=is_last, message=message, at=AT
        )

    def finish(self) -> list[str]:
        return list(anyio.run(self.landing.finish_interrupted))

    def git(self, *arguments: str | Path) -> str:
        return git(self.project, *arguments)

    def read(self, name: str) -> str:
        return (self.project / name).read_text()

    @property
    def leftovers(self) -> list[str]:
        """What a landing left in the state directory, but for its locks."""
        folder = self.state / "landing"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted(name for name in names if not name.endswith(".lock"))


def lay(folder: Path, files: Mapping[str, str] | None = None) -> Ground:
    """The ground in a folder."""
    return Ground(folder, make_repository(folder / "project", files))


Change = Callable[[str], str]


def first_line(text: str) -> str:
    return text.replace("line 1\n", "line one\n", 1)


def last_line(text: str) -> str:
    return text.replace("line 20\n", "line twenty\n", 1)


class Meddling:
    """A probe that does something when a landing comes to a point for the n-th time."""

    def __init__(self, point: str, does: Callable[[], object], nth: int = 1) -> None:
        self._point, self._does, self._left = point, does, nth

    def __call__(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                self._does()


def shown(project: Path) -> dict[str, object]:
    """What the user sees of a repository: refs, index, stash and files; not how git stores them."""
    return {
        "refs": git(project, "for-each-ref", "--format=%(refname) %(objectname)"),
        "head": git(project, "rev-parse", "--symbolic-full-name", "HEAD"),
        "index": git(project, "ls-files", "-s", "-z"),
        "files": dump(project, without=(".git",)),
        "locks": sorted(str(path) for path in (project / ".git").rglob("*.lock")),
    }


def subjects(project: Path, branch: str = "main") -> list[str]:
    """The subjects of a branch's commits, newest first."""
    return git(project, "log", "--format=%s", branch).splitlines()


def status(directory: Path) -> str:
    """What git says is not committed."""
    return git(directory, "status", "--porcelain")
