"""UserRepository: the user's own, as a landing needs it: its branches, who has them checked out, and its settings."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nightherd.errors import WorkspaceError
from nightherd.files.atomic import sync_directory
from nightherd.model.workspaces.workspace import Workspace
from nightherd.workspaces.git import SHORT_S, Git, Place, failure, split
from nightherd.workspaces.landing.commits import NOBODY, Identity
from nightherd.workspaces.repositories import locate
from nightherd.workspaces.stores import store_name

HEADS = "refs/heads/"
UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
"""What a git directory has while an operation of the user is not finished."""
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
FILE_SETTINGS = {"autocrlf": ("true", "input"), "eol": ("lf", "crlf"), "filemode": ("false",)}
REFTABLE = "refs/heads/.invalid"
"""What the file HEAD says where refs are not kept in files."""


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """A directory that the repository is checked out in."""

    directory: Path
    git_dir: Path
    branch: str | None
    """The full name of the branch; None for a detached HEAD."""

    @property
    def is_known(self) -> bool:
        """Whether it is known where its files are; not so for a git directory that is kept elsewhere."""
        return self.directory != self.git_dir

    @property
    def index(self) -> Path:
        """Its index."""
        return self.git_dir / "index"

    @property
    def under_way(self) -> str | None:
        """What the user is in the middle of there."""
        return next(
            (what for name, what in UNDER_WAY.items() if (self.git_dir / name).exists()), None
        )

    def occupies(self, ref: str) -> bool:
        """Whether a rebase or bisect there will go back to the branch, which is not checked out meanwhile."""
        names = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
        return any(_line(self.git_dir / name) in (ref, ref.removeprefix(HEADS)) for name in names)


def has_commit(git: Git, common_dir: str, commit: str | None) -> bool:
    """Return whether a repository has a commit; no for none."""
    if commit is None:
        return False
    place = Place(git_dir=common_dir)
    return git.attempt(place, "cat-file", "-e", f"{commit}^{{commit}}", timeout=SHORT_S).status == 0


class UserRepository:
    """The repository that a workspace was made from."""

    def __init__(self, git: Git, common: str) -> None:
        self._git, self.common = git, common

    @classmethod
    def of(cls, git: Git, workspace: Workspace) -> UserRepository:
        """Find it. `WorkspaceError` when it is gone, or another one is in its place."""
        located = locate(git, workspace.root)
        is_known = store_name(located.common_dir, located.object_format) == workspace.store
        # The store is named by where the repository was; one that was moved has the same commits.
        if not is_known and not has_commit(git, located.common_dir, workspace.base_commit):
            raise WorkspaceError(
                f"workspace {workspace.id} was made from another repository than the one that "
                f"'{workspace.root}' is in now: '{located.common_dir}'",
                hint="bring the repository back to where it was",
            )
        return cls(git, os.path.realpath(located.common_dir))

    @property
    def place(self) -> Place:
        """For commands that resolve names and move refs."""
        return Place(git_dir=self.common)

    @property
    def objects(self) -> Path:
        """Its directory of objects."""
        return Path(self.common) / "objects"

    @property
    def shallow(self) -> str | None:
        """The file with the last commits of a clone that has only some; None for a whole one."""
        path = Path(self.common) / "shallow"
        return str(path) if path.is_file() else None

    def tip(self, ref: str) -> str | None:
        """Return the commit that a ref is at; None when there is no such ref."""
        arguments = ("rev-parse", "--verify", "-q", f"{ref}^{{commit}}")
        done = self._git.attempt(self.place, *arguments, timeout=SHORT_S)
        return done.out.decode().strip() or None if done.status == 0 else None

    def is_symbolic(self, ref: str) -> bool:
        """Whether the ref is another name of a branch."""
        return self._git.attempt(self.place, "symbolic-ref", "-q", ref, timeout=SHORT_S).status == 0

    def move(self, ref: str, new: str, old: str, message: str, identity: Identity = NOBODY) -> bool:
        """Move a ref from `old` to `new`; False when it is somewhere else by now."""
        variables = {"GIT_COMMITTER_NAME": identity.name, "GIT_COMMITTER_EMAIL": identity.email}
        arguments = ("update-ref", "-m", message, ref, new, old)
        done = self._git.attempt(self.place, *arguments, timeout=SHORT_S, variables=variables)
        if done.status == 0:
            return True
        if (self.tip(ref) or "0" * len(old)) != old:
            return False
        raise self._git.error(done, self.place, arguments, f"{ref} cannot be moved")

    def add_pack(self, pack: Path) -> None:
        """Add packed objects to the repository; git sees them when the last file is in its place."""
        folder = self.objects / "pack"
        try:
            folder.mkdir(exist_ok=True)
            for source in (pack, pack.with_suffix(".idx")):
                target = folder / source.name
                if target.exists():
                    continue
                temporary = folder / f"tmp_nightherd_{os.getpid()}_{source.name}"
                shutil.copyfile(source, temporary)
                temporary.chmod(0o444)
                with temporary.open("rb") as copied:
                    os.fsync(copied.fileno())
                temporary.replace(target)
            sync_directory(folder)
        except OSError as error:
            raise failure(error, f"objects cannot be written to '{folder}'") from error

    def worktrees(self, top: Path) -> list[CheckedOut]:
        """Return every directory it is checked out in; `top` is the one that the agent's directory is in."""
        common = Path(self.common)
        trees = []
        main = self._main_directory(top)
        if main is not None:
            trees.append(CheckedOut(main, common, self._head(common)))
        for admin in sorted((common / "worktrees").glob("*")):
            link = _line(admin / "gitdir")
            if link:
                directory = Path(os.path.normpath(admin / link)).parent
                trees.append(CheckedOut(directory, admin, self._head(admin)))
        return trees

    def is_current(self, worktree: CheckedOut) -> bool:
        """Whether the directory still has the same branch checked out, and nothing is under way there."""
        return self._head(worktree.git_dir) == worktree.branch and worktree.under_way is None

    def _main_directory(self, top: Path) -> Path | None:
        common = Path(self.common)
        done = self._git.attempt(self.place, "rev-parse", "--is-bare-repository", timeout=SHORT_S)
        if done.out.strip() == b"true":
            return None
        if common.name == ".git":
            return common.parent
        link = _line(top / ".git").removeprefix("gitdir: ")
        is_here = bool(link) and os.path.realpath(top / link) == self.common
        return top if is_here else common

    def _head(self, git_dir: Path) -> str | None:
        """Return the branch that is checked out; None for a detached HEAD."""
        text = _line(git_dir / "HEAD")
        if not text.startswith("ref: "):
            return None
        ref = text.removeprefix("ref: ").strip()
        if ref != REFTABLE:
            return ref
        place = Place(git_dir=str(git_dir))
        done = self._git.attempt(place, "symbolic-ref", "-q", "HEAD", timeout=SHORT_S)
        return _text(done.out) or None

    def remote_address(self, name: str) -> str | None:
        """Return where the remote of that name is pushed to."""
        file = str(Path(self.common) / "config")
        for key in (f"remote.{name}.pushurl", f"remote.{name}.url"):
            done = self._git.attempt(
                self.place, "config", "--file", file, "--get", key, timeout=SHORT_S
            )
            if done.status == 0 and done.out.strip():
                return _text(done.out)
        return None

    def file_settings(self) -> Mapping[str, str]:
        """Return how the user's git reads and writes files: few settings, with values that can mean nothing else."""
        settings = {}
        for name, values in FILE_SETTINGS.items():
            value = _config(self._git, self.place, f"core.{name}").lower()
            value = "true" if value in TRUE else "false" if value in FALSE else value
            if value in values:
                settings[name] = value
        return settings

    def filters(self) -> frozenset[str]:
        """Return the names of the filters that the user's git has: they are only named here, never run."""
        arguments = (
            "config",
            "-z",
            "--name-only",
            "--get-regexp",
            r"^filter\..*\.(clean|process)$",
        )
        done = self._git.attempt(self.place, *arguments, timeout=SHORT_S, needs_credentials=True)
        names = [key.partition(".")[2].rpartition(".")[0] for key in split(done.out)]
        return frozenset(names)


def identity_of(git: Git, place: Place) -> Identity:
    """Return who the user is to git, by the user's own configuration; `place` is a repository that has none."""
    name, email = _config(git, place, "user.name"), _config(git, place, "user.email")
    return Identity(name, email) if name and email else NOBODY


def _config(git: Git, place: Place, key: str) -> str:
    arguments = ("config", "--get", key)
    done = git.attempt(place, *arguments, timeout=SHORT_S, needs_credentials=True)
    return _text(done.out).strip() if done.status == 0 else ""


def _text(output: bytes) -> str:
    return os.fsdecode(output.removesuffix(b"\n"))


def _line(path: Path) -> str:
    """Return the one line of a small file of git; nothing when it is not there."""
    try:
        return os.fsdecode(path.read_bytes()).rstrip("\n")
    except OSError:
        return ""
