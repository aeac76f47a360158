"""Bringing commits home: from the repository in a workspace to the user's, which has the same branch.

An agent in a container can write anything there. So its objects are copied first, without following links and without the
alternates, indexes and settings that stand beside them. What is new is packed, and every name is computed again from its
content. Only a pack that is whole that way gets into the user's repository.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from nightherd.errors import StateError, WorkspaceError
from nightherd.files.atomic import atomic_write_file
from nightherd.files.permission import make_private
from nightherd.files.regular import open_directory
from nightherd.workspaces.git import SHORT_S, Git, Place, failure
from nightherd.workspaces.landing.repository import UserRepository
from nightherd.workspaces.origin_refs import SHALLOW, read_boundary
from nightherd.workspaces.own_repository import OwnRepository, format_of
from nightherd.workspaces.record import Record, remove_tree
from nightherd.workspaces.stores import CONFIG, FORMAT, HEAD, SHA1, alternate_line
from nightherd.workspaces.tools import Tools

FOLDER = "incoming"
MOST_BYTES = 8 * 1024**3
"""Of the objects that an agent adds; commits with more stay in the workspace, and its files are in snapshots."""
BLOCK = 1024 * 1024
LOOSE_FOLDER = re.compile(r"[0-9a-f]{2}")
LOOSE = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
PACK = re.compile(r"pack-(?:[0-9a-f]{40}|[0-9a-f]{64})\.pack")
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def bring_commits(
    tools: Tools,
    record: Record,
    own: OwnRepository,
    common_dir: str,
    head: str,
    known: Sequence[str],
) -> None:
    """Add a commit of a workspace, and all that it needs, to the user's repository.

    `known` are commits that the repository has. `WorkspaceError` when something is missing, or is not what it is called.
    """
    folder = record.folder / FOLDER
    place = Place(git_dir=common_dir)
    if _has(tools.git, place, head, known):
        return
    try:
        remove_tree(folder)
        _Import(tools, folder, common_dir).run(own, head, known)
    except (OSError, StateError) as error:
        raise failure(error, f"the commits of '{record.top}' cannot be read") from error
    finally:
        remove_tree(folder)


def move_branch(git: Git, common_dir: str, branch: str, commit: str, kept: str | None) -> None:
    """Let the branch in the user's repository follow that of the workspace.

    It stays where it is when it is checked out or was deleted, or when commits are on it that the workspace has not.
    `kept` is the commit that it followed to before.
    """
    ref, place = f"refs/heads/{branch}", Place(git_dir=common_dir)
    out = git.in_repository(
        common_dir, "for-each-ref", "--format=%(objectname) %(worktreepath)", ref
    )
    tip, _, checked_out = os.fsdecode(out).removesuffix("\n").partition(" ")
    if not tip or checked_out or tip == commit:
        return
    is_ahead = ("merge-base", "--is-ancestor", tip, commit)
    if tip != kept and git.attempt(place, *is_ahead, timeout=SHORT_S).status != 0:
        return
    move = ("update-ref", "-m", "nightherd: commits of the workspace", ref, commit, tip)
    git.attempt(place, *move, timeout=SHORT_S)  # one that moved meanwhile stays where it is


def _has(git: Git, place: Place, head: str, known: Sequence[str]) -> bool:
    """Whether the repository has a commit with all that it needs, as far as that is not below `known`."""
    exists = git.attempt(place, "cat-file", "-e", f"{head}^{{commit}}", timeout=SHORT_S)
    return exists.status == 0 and _is_whole(git, place, head, known)


def _is_whole(git: Git, place: Place, head: str, known: Sequence[str]) -> bool:
    excluded = (f"^{commit}" for commit in known)
    done = git.attempt(place, "rev-list", "--objects", "--quiet", head, *excluded)
    return done.status == 0


class _Import:
    """One import, in a directory of its own."""

    def __init__(self, tools: Tools, folder: Path, common_dir: str) -> None:
        self._tools, self._folder, self._common_dir = tools, folder, common_dir
        self._left = MOST_BYTES

    def run(self, own: OwnRepository, head: str, known: Sequence[str]) -> None:
        git, probe = self._tools.git, self._tools.probe
        copied, checked = self._git_dir("copied"), self._git_dir("checked")
        for pack in self._copy(own.objects, Path(copied.git_dir or "") / "objects"):
            git.run(copied, "index-pack", pack, doing="a pack of the workspace cannot be read")
        probe("commits.copied")
        wanted = "".join((f"{head}\n", *(f"^{commit}\n" for commit in known)))
        packs = Path(checked.git_dir or "") / "objects" / "pack"
        git.run(
            copied, "pack-objects", "--quiet", "--revs", "--local", "--non-empty", packs / "pack",
            data=wanted.encode(), doing="the commits of the workspace are not whole",
        )  # fmt: skip
        # Names and links are computed from the content again: what git packed was read by names that an agent gave.
        made = sorted(packs.glob("*.pack"))
        for path in set(packs.iterdir()) - set(made):
            path.unlink()
        for pack in made:
            doing = "the commits of the workspace are damaged"
            git.run(checked, "index-pack", "--strict", pack, doing=doing)
        probe("commits.packed")
        if not _is_whole(git, checked, head, known):
            raise WorkspaceError("the commits of the workspace are not whole")
        for pack in made:
            UserRepository(git, self._common_dir).add_pack(pack)
        probe("commits.added")

    def _git_dir(self, name: str) -> Place:
        """A new git directory of ours, which reads the objects of the user's repository."""
        path = self._folder / name
        make_private(path / "objects" / "pack", self._tools.state_dir)
        make_private(path / "objects" / "info", self._tools.state_dir)
        make_private(path / "refs", self._tools.state_dir)
        object_format = format_of(self._tools.git, self._common_dir)
        is_sha1 = object_format == SHA1
        config = CONFIG.format(version=0 if is_sha1 else 1)
        config += "" if is_sha1 else FORMAT.format(name=object_format)
        objects = os.path.realpath(Path(self._common_dir) / "objects")
        boundary = read_boundary(Path(self._common_dir))
        if boundary is not None:
            atomic_write_file(path / SHALLOW, boundary, durable=False)
        line = os.fsencode(f"{alternate_line(objects)}\n")
        atomic_write_file(path / "objects" / "info" / "alternates", line, durable=False)
        atomic_write_file(path / "config", config, durable=False)
        atomic_write_file(path / "HEAD", HEAD, durable=False)
        return Place(git_dir=str(path), is_ours=True)

    def _copy(self, source: Path, target: Path) -> Iterator[Path]:
        """Copy loose objects and packs; yields the packs, which have no index yet."""
        directory = open_directory(source)
        try:
            for folder in _names(directory):
                is_packs = folder == "pack"
                if not is_packs and not LOOSE_FOLDER.fullmatch(folder):
                    continue
                inner = os.open(folder, READ | os.O_DIRECTORY, dir_fd=directory)
                try:
                    (target / folder).mkdir(exist_ok=True)
                    pattern = PACK if is_packs else LOOSE
                    for name in filter(pattern.fullmatch, _names(inner)):
                        self._copy_file(inner, name, target / folder / name)
                        if is_packs:
                            yield target / folder / name
                finally:
                    os.close(inner)
        finally:
            os.close(directory)

    def _copy_file(self, directory: int, name: str, target: Path) -> None:
        handle = os.open(name, READ, dir_fd=directory)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise WorkspaceError(f"'{name}' in the workspace's repository is not a file")
            with target.open("xb") as copy:
                while block := file.read(BLOCK):
                    self._left -= len(block)
                    if self._left < 0:
                        raise WorkspaceError(
                            "the commits of the workspace are too large to be kept"
                        )
                    copy.write(block)


def _names(directory: int) -> list[str]:
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        return sorted(os.listdir(handle))  # noqa: PTH208 (of a descriptor)
    finally:
        os.close(handle)
