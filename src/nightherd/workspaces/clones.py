"""Clones: the agent's directory, cloned when it is missing and fetched before each job.

A clone is made as `<root>.cloning` and renamed when it is whole. What a killed process left of one is removed by the
next. Two processes that clone or fetch the same wait for each other: the lock is the directory itself.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from nightherd.errors import StateError, WorkspaceError
from nightherd.files.atomic import atomic_write_file
from nightherd.model.workspaces.policy import CloneTerms
from nightherd.model.workspaces.repository import is_same_repository
from nightherd.workspaces.git import SHORT_S, Git, Place, failure
from nightherd.workspaces.origin_refs import (
    REMOTE,
    SHALLOW,
    Refs,
    borrowing,
    read_boundary,
    read_refs,
    set_refs,
    update_origin,
)
from nightherd.workspaces.record import remove_tree
from nightherd.workspaces.remotes import fetch
from nightherd.workspaces.stores import SHA1
from nightherd.workspaces.tools import Tools

STAGING = ".cloning"
MARK = "nightherd-clone"
"""A file in `.git` of every directory that nightherd clones: one that is half cloned is removed, no other is."""
CLONE_S = 3600.0
PATIENCE_S = 600.0
"""How long a job waits for another that clones or fetches the same."""
PAUSE_S = 0.05
SHOWN_BRANCHES = 10
OTHER_FORMAT = "sha256"


def clone_or_fetch(tools: Tools, terms: CloneTerms, root: str) -> list[str]:
    """Clone to `root` if nothing is there, or fetch if it is a clone of that repository; return notes for people.

    Any other directory is left alone. `WorkspaceError` when it cannot be cloned; a fetch that fails is a note.
    """
    path = Path(root)
    if not os.path.lexists(path):
        try:
            if _clone(tools, terms, path):
                return []
        except (OSError, StateError) as error:
            raise failure(error, f"'{root}' cannot be cloned from {terms.url}") from error
    if not is_clone(tools.git, terms.url, path):
        return []
    try:
        with _locked(tools.git, path / ".git") as handle:
            return update_origin(replace(tools, git=tools.git.holding(handle)), terms, path)
    except WorkspaceError as error:
        return [f"'{root}' is not up to date: {error.message}"]
    except (OSError, StateError) as error:
        return [f"'{root}' is not up to date: {error}"]


def is_clone(git: Git, url: str, root: Path) -> bool:
    """Whether the directory is the top of a repository whose `origin` is that address."""
    dot_git = root / ".git"
    try:
        for folder in (dot_git, dot_git / "objects"):
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return False
        if not stat.S_ISREG((dot_git / "config").lstat().st_mode):
            return False
    except OSError:
        return False
    found = git.attempt(
        Place(directory="/"), "config", "--file", dot_git / "config", "--no-includes", "--null",
        "--get", "remote.origin.url", timeout=SHORT_S,
    )  # fmt: skip
    origin = os.fsdecode(found.out.removesuffix(b"\0"))
    return found.status == 0 and is_same_repository(origin, url)


def _clone(tools: Tools, terms: CloneTerms, root: Path) -> bool:
    """Clone it; False when another process just has."""
    staging = root.with_name(f"{root.name}{STAGING}")
    with _owning_staging(tools.git, staging, root) as handle:
        if handle is None:
            return False
        owner = replace(tools, git=tools.git.holding(handle))
        try:
            _make(owner, terms, staging, root)
            tools.probe("clone.made")
            staging.rename(root)
        except (WorkspaceError, OSError, StateError) as error:
            _discard(staging, root)
            # Somebody may have made the directory meanwhile.
            if isinstance(error, OSError) and os.path.lexists(root):
                return False
            raise
        tools.probe("clone.renamed")
    return True


def _make(tools: Tools, terms: CloneTerms, staging: Path, root: Path) -> None:
    """Make the clone, in the format of objects that the server has."""
    try:
        _fill(tools, terms, staging, root)
    except WorkspaceError as error:
        if "mismatched algorithms" not in error.message:
            raise
        _fill(tools, terms, staging, root, OTHER_FORMAT)


def _fill(
    tools: Tools, terms: CloneTerms, staging: Path, root: Path, object_format: str = SHA1
) -> None:
    """Make the clone at `staging`, which is empty or half made."""
    _clear(staging, root)
    dot_git = staging / ".git"
    dot_git.mkdir()
    atomic_write_file(dot_git / MARK, f"cloned by nightherd from {terms.url}\n", durable=False)
    tools.probe("clone.begun")
    tools.git.run(
        Place(directory=str(staging)), "init", "--quiet", "--template=",
        f"--initial-branch={terms.branch}", f"--object-format={object_format}",
    )  # fmt: skip
    with borrowing(tools, root, dot_git, object_format) as own:
        options = (f"--depth={terms.depth}",) if terms.depth else ()
        fetch(tools.git, own, terms, *options, timeout=CLONE_S)
        tools.probe("clone.fetched")
        refs = read_refs(tools.git, own, REMOTE, "refs/tags/")
        commit = refs.get(os.fsencode(REMOTE + terms.branch))
        if commit is None:
            raise _no_branch(terms, refs)
        boundary = read_boundary(Path(own.git_dir or ""))
        if boundary is not None:
            atomic_write_file(dot_git / SHALLOW, boundary, mode=0o644, durable=False)
        set_refs(tools.git, dot_git, {**refs, os.fsencode(f"refs/heads/{terms.branch}"): commit})
        _describe(tools.git, dot_git, terms)
        tools.probe("clone.filled")
        place = replace(own, work_tree=str(staging), index=str(dot_git / "index"))
        tools.git.run(place, "read-tree", "--reset", "-u", commit)


def _describe(git: Git, dot_git: Path, terms: CloneTerms) -> None:
    """Say in the clone where it comes from, as `git clone` does."""
    head = f"{REMOTE}{terms.branch}"
    git.in_repository(str(dot_git), "symbolic-ref", f"{REMOTE}HEAD", head)
    settings = {
        "remote.origin.url": terms.url,
        "remote.origin.fetch": f"+refs/heads/*:{REMOTE}*",
        f"branch.{terms.branch}.remote": "origin",
        f"branch.{terms.branch}.merge": f"refs/heads/{terms.branch}",
    }
    for key, value in settings.items():
        git.in_repository(str(dot_git), "config", "--file", dot_git / "config", key, value)


@contextmanager
def _owning_staging(git: Git, staging: Path, root: Path) -> Iterator[int | None]:
    """Own the directory that a clone is made in; None when the clone is there by then."""
    deadline = time.monotonic() + PATIENCE_S
    while not os.path.lexists(root):
        staging.mkdir(parents=True, exist_ok=True)
        with _locked(git, staging, deadline) as handle:
            # Renamed while this process waited: then it is the clone.
            if _is_still(staging, handle):
                yield handle
                return
    yield None


@contextmanager
def _locked(git: Git, directory: Path, deadline: float | None = None) -> Iterator[int]:
    """Hold the lock of a directory. Git commands that inherit it hold it too, also when this process is killed."""
    last = time.monotonic() + PATIENCE_S if deadline is None else deadline
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(directory, flags)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pass
            if time.monotonic() > last:
                message = f"another process clones or fetches '{directory}'"
                raise WorkspaceError(message, can_pass=True)
            git.check_stopped()
            time.sleep(PAUSE_S)
        yield handle
    finally:
        os.close(handle)


def _is_still(directory: Path, handle: int) -> bool:
    try:
        return os.path.samestat(directory.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _clear(staging: Path, root: Path) -> None:
    """Remove what a killed process left; what is not ours is in the way."""
    entries = list(staging.iterdir())
    if entries and not _is_ours(staging, entries):
        message = f"'{staging}' is in the way: '{root}' is cloned there first"
        raise WorkspaceError(message, hint="remove it, or rename it")
    dot_git = staging / ".git"
    # The mark goes last: what is half removed is still known as ours.
    for entry in entries:
        if entry != dot_git:
            remove_tree(entry)
    for entry in dot_git.iterdir() if entries else ():
        if entry.name != MARK:
            remove_tree(entry)
    remove_tree(dot_git)


def _is_ours(staging: Path, entries: list[Path]) -> bool:
    dot_git = staging / ".git"
    return (dot_git / MARK).is_file() or (entries == [dot_git] and not any(dot_git.iterdir()))


def _discard(staging: Path, root: Path) -> None:
    """Leave nothing of a clone that failed; what is not ours stays."""
    try:
        _clear(staging, root)
        staging.rmdir()
    except (OSError, WorkspaceError):
        pass


def _no_branch(terms: CloneTerms, refs: Refs) -> WorkspaceError:
    names = [
        os.fsdecode(ref).removeprefix(REMOTE) for ref in refs if ref.startswith(REMOTE.encode())
    ]
    known = ", ".join(names[:SHOWN_BRANCHES]) + (", ..." if len(names) > SHOWN_BRANCHES else "")
    message = f"{terms.url} has no branch {terms.branch!r}"
    hint = f"set working_directory.default_branch to one of: {known}"
    return WorkspaceError(message, hint=hint if names else "push a commit to it first")
