"""OwnRepository: the repository inside a workspace for a container, which borrows the objects of the user's.

    <workspace>/.git/
        config                    ours: how files are read, who commits, and where `origin` is
        objects/info/alternates   the objects of the user's repository, which a container sees read-only
        packed-refs               the user's branches and tags as they were when it was made

A container can write all of it. So nothing on the host runs git there, links in it are never followed, and what is read
of it is checked. Its branch is in the user's repository too, and follows: see `bring_commits`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from nightherd.files.git_directories import alternates
from nightherd.files.regular import open_directory, open_regular
from nightherd.files.without_links import make_directories, replace_without_links
from nightherd.model.workspaces.policy import WorkspaceMode
from nightherd.model.workspaces.repository import without_credentials
from nightherd.model.workspaces.workspace import BRANCH_PREFIX, Workspace
from nightherd.workspaces.git import SHORT_S, Git, Place, failure
from nightherd.workspaces.landing.commits import NOBODY
from nightherd.workspaces.landing.repository import UserRepository, identity_of
from nightherd.workspaces.repositories import COMMIT
from nightherd.workspaces.stores import FORMAT, SHA1, alternate_line
from nightherd.workspaces.worktrees import Worktree

HEAD_REF = re.compile(r"ref: (refs/heads/[^\0\n]+)\n?")
SAFE_REF = re.compile(r"refs/heads/(?!.*(?:\.\.|//|/\.))[^\0-\x20\x7f~^:?*\[\\]+(?<![/.])")
SMALL = 4 * 1024
"""Bytes of a ref; a longer one is none."""
MOST_PACKED = 64 * 1024 * 1024
"""Bytes of packed refs that are read."""
FOLDERS = ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks")
CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
"""
SHARED_REFS = ("refs/heads", "refs/remotes", "refs/tags")
FILE_MODE = 0o644


class OwnRepository:
    """The repository of one workspace, there or not. It has the methods of `Worktree` that making one needs."""

    original = None
    """What it is a copy of: copies do not disturb each other."""

    def __init__(self, git: Git, common_dir: str, top: Path) -> None:
        """`common_dir` is the user's repository."""
        self._git, self._common_dir, self._top = git, common_dir, top
        # The directories above are ours: only what is below may be exchanged for a link.
        self._real = Path(os.path.realpath(top.parent)) / top.name
        self._dot_git = self._real / ".git"

    @property
    def objects(self) -> Path:
        """Its own objects."""
        return self._dot_git / "objects"

    @property
    def borrowed(self) -> tuple[str, ...]:
        """The directories of objects that git reads in it besides its own."""
        objects = Path(os.path.realpath(Path(self._common_dir) / "objects"))
        return (str(objects), *alternates(objects))

    @property
    def is_registered(self) -> bool:
        """Whether git would take it for a repository."""
        try:
            os.close(open_directory(self.objects))
        except OSError:
            return False
        return self._read("HEAD", SMALL) != ""

    def check_not_copied(self) -> None:
        """Nothing: a copy has a repository of its own."""

    def register(self, branch: str, commit: str, *, is_new_branch: bool) -> None:
        """Make the branch in the user's repository, and a repository in the workspace that is on it."""
        if is_new_branch:
            nothing = "0" * len(commit)
            self._git.in_repository(
                self._common_dir, "update-ref", f"refs/heads/{branch}", commit, nothing,
                doing=f"the branch {branch} cannot be made",
            )  # fmt: skip
        try:
            self._real.mkdir(exist_ok=True)
            self._write_all(branch, commit)
        except OSError as error:
            raise failure(error, f"the repository in '{self._top}' cannot be made") from error

    def link(self) -> None:
        """Make it borrow from where the user's repository is now."""
        try:
            make_directories(self._dot_git, "objects/info")
            if self._read("objects/info/alternates", MOST_PACKED) != self._alternates():
                self._write("objects/info/alternates", self._alternates())
        except OSError as error:
            raise failure(error, f"the repository in '{self._top}' cannot be used") from error

    def repair(self, branch: str, commit: str, *, is_new_branch: bool) -> None:
        """Make a repository in a workspace that has lost its own; what stands in its place is kept aside."""
        try:
            if os.path.lexists(self._dot_git):
                number = 1
                while os.path.lexists(aside := self._real / f".git.replaced-{number}"):
                    number += 1
                self._dot_git.rename(aside)
        except OSError as error:
            raise failure(error, f"the repository in '{self._top}' cannot be made") from error
        self.register(branch, commit, is_new_branch=is_new_branch)

    def unregister(self) -> None:
        """Nothing: the user's repository knows nothing of it."""

    def write_index(self, draft: Path) -> None:
        """Copy an index that matches the commit checked out. It keeps its time: git judges by that what is racy."""
        try:
            status = draft.stat()
            times = status.st_atime_ns, status.st_mtime_ns
            path = self._dot_git / "index"
            replace_without_links(
                path, draft.read_bytes(), mode=FILE_MODE, is_durable=False, times=times
            )
        except OSError as error:
            raise failure(error, f"the index of '{self._top}' cannot be written") from error

    def head(self) -> str | None:
        """Return the commit that is checked out in it; None when there is none that can be read."""
        text = self._read("HEAD", SMALL)
        symbolic = HEAD_REF.fullmatch(text)
        return self.tip(symbolic[1]) if symbolic is not None else _commit(text)

    @property
    def ref(self) -> str | None:
        """The branch that is checked out in it, by its full name; None for a detached HEAD."""
        symbolic = HEAD_REF.fullmatch(self._read("HEAD", SMALL))
        return symbolic[1] if symbolic is not None else None

    def tip(self, ref: str) -> str | None:
        """Return the commit that one of its branches is at."""
        if SAFE_REF.fullmatch(ref) is None:
            return None
        commit = _commit(self._read(ref, SMALL))
        if commit is not None:
            return commit
        for line in self._read("packed-refs", MOST_PACKED).split("\n"):
            name, _, packed = line.partition(" ")
            if packed == ref:
                return _commit(name)
        return None

    def move(self, ref: str, commit: str) -> None:
        """Set one of its branches."""
        try:
            make_directories(self._dot_git, os.path.dirname(ref))  # noqa: PTH120 (a name of git)
            self._write(ref, f"{commit}\n")
        except OSError as error:
            raise failure(error, f"{ref} in '{self._top}' cannot be moved") from error

    def _write_all(self, branch: str, commit: str) -> None:
        (self._dot_git).mkdir(exist_ok=True)
        for folder in (*FOLDERS, os.path.dirname(f"refs/heads/{branch}")):  # noqa: PTH120
            make_directories(self._dot_git, folder)
        self._write("config", self._config())
        self._write("objects/info/alternates", self._alternates())
        self._write("packed-refs", self._shared_refs(branch))
        for name, source in (("info/exclude", "info/exclude"), ("shallow", "shallow")):
            content = _user_file(Path(self._common_dir) / source)
            if content is not None:
                replace_without_links(
                    self._dot_git / name, content, mode=FILE_MODE, is_durable=False
                )
        self._write(f"refs/heads/{branch}", f"{commit}\n")
        # The last file: with it, git takes it for a repository.
        self._write("HEAD", f"ref: refs/heads/{branch}\n")

    def _config(self) -> str:
        object_format = format_of(self._git, self._common_dir)
        is_sha1 = object_format == SHA1
        text = CONFIG.format(version=0 if is_sha1 else 1)
        user = UserRepository(self._git, self._common_dir)
        text += "".join(f"\t{name} = {value}\n" for name, value in user.file_settings().items())
        if not is_sha1:
            text += FORMAT.format(name=object_format)
        identity = identity_of(self._git, user.place)
        if identity != NOBODY:
            text += (
                f"[user]\n\tname = {_quoted(identity.name)}\n\temail = {_quoted(identity.email)}\n"
            )
        address = user.remote_address("origin")
        if address:
            text += (
                f'[remote "origin"]\n\turl = {_quoted(without_credentials(address))}\n'
                "\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
            )
        return text

    def _alternates(self) -> str:
        return f"{alternate_line(self.borrowed[0])}\n"

    def _shared_refs(self, branch: str) -> str:
        """The user's branches, remote branches and tags, without those of other workspaces."""
        out = self._git.run(
            Place(git_dir=self._common_dir), "for-each-ref",
            "--format=%(objectname) %(refname) %(symref)", *SHARED_REFS, timeout=SHORT_S,
        )  # fmt: skip
        lines = []
        for line in os.fsdecode(out).split("\n"):
            commit, _, rest = line.partition(" ")
            ref, _, symbolic = rest.partition(" ")
            is_ours = ref.startswith(f"refs/heads/{BRANCH_PREFIX}/")
            if ref and not symbolic and not is_ours:
                lines.append(f"{commit} {ref}\n")
        return "".join(lines)

    def _write(self, name: str, content: str) -> None:
        data = os.fsencode(content)
        replace_without_links(self._dot_git / name, data, mode=FILE_MODE, is_durable=False)

    def _read(self, name: str, most: int) -> str:
        """What a file of it says; nothing where there is none, or one that is too long."""
        try:
            with open_regular(self._dot_git / name, follows_links=False) as file:
                content = file.read(most + 1)
        except OSError:
            return ""
        return os.fsdecode(content) if len(content) <= most else ""


Checkout = Worktree | OwnRepository
"""How git knows the directory of a workspace."""


def checkout_of(git: Git, workspace: Workspace, common_dir: str, top: Path) -> Checkout:
    """Return how git knows a workspace that has a branch; `common_dir` is the user's repository."""
    kind = OwnRepository if workspace.mode is WorkspaceMode.CLONE else Worktree
    return kind(git, common_dir, top)


def format_of(git: Git, common_dir: str) -> str:
    """Return how a repository names its objects."""
    return git.in_repository(common_dir, "rev-parse", "--show-object-format").decode().strip()


def _commit(text: str) -> str | None:
    name = text.removesuffix("\n")
    return name if COMMIT.fullmatch(name) else None


def _user_file(path: Path) -> bytes | None:
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError:
        return None


def _quoted(text: str) -> str:
    """A value in a configuration file of git."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
