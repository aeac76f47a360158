"""The branches of `origin` in a clone, brought up to date without reading the clone's own configuration.

Git works in a directory of our own, `<state directory>/clones/<name>.git`, that only borrows the objects of the clone. It is
made anew each time, from the refs of the clone whose commits are there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nightherd.errors import WorkspaceError
from nightherd.files.atomic import atomic_write_file
from nightherd.files.permission import make_private
from nightherd.files.regular import read_regular
from nightherd.model.workspaces.policy import CloneTerms
from nightherd.ports import Probe
from nightherd.workspaces.git import SHORT_S, Git, Place
from nightherd.workspaces.record import remove_tree
from nightherd.workspaces.remotes import fetch
from nightherd.workspaces.stores import CONFIG, FORMAT, HEAD, SHA1, store_name
from nightherd.workspaces.tools import Tools

FOLDER = "clones"
SHALLOW = "shallow"
DRAFT = "nightherd-shallow"
REMOTE = "refs/remotes/origin/"

Refs = Mapping[bytes, bytes]
"""Commits by the full names of their refs."""


def update_origin(tools: Tools, terms: CloneTerms, root: Path) -> list[str]:
    """Bring `refs/remotes/origin` of a clone up to date, and nothing else; return notes. Its lock has to be held."""
    git, dot_git = tools.git, root / ".git"
    _drop_own_lock(dot_git)
    if any((dot_git / "objects" / "pack").glob("*.promisor")):
        return [f"'{root}' is a partial clone, which nightherd does not fetch"]
    object_format = git.in_repository(str(dot_git), "rev-parse", "--show-object-format")
    before = read_refs(git, Place(git_dir=str(dot_git)), REMOTE)
    boundary = read_boundary(dot_git)
    with borrowing(tools, root, dot_git, object_format.decode().strip()) as own:
        own_dir = Path(own.git_dir or "")
        if boundary is not None:
            atomic_write_file(own_dir / SHALLOW, boundary, durable=False)
        present = _present(git, own, before)
        packed = b"".join(b"%s %s\n" % (commit, ref) for ref, commit in present.items())
        atomic_write_file(own_dir / "packed-refs", packed, durable=False)
        options = ("--unshallow",) if boundary is not None and terms.depth == 0 else ()
        fetch(git, own, terms, "--no-tags", *options)
        tools.probe("fetch.fetched")
        after = read_refs(git, own, REMOTE)
        _move_boundary(dot_git, boundary, read_boundary(own_dir), tools.probe)
        tools.probe("fetch.bounded")
    # First what is gone: a branch `a/b` needs the place of a branch `a`.
    set_refs(git, dot_git, dict.fromkeys(before.keys() - after.keys(), b""))
    tools.probe("fetch.pruned")
    set_refs(git, dot_git, {ref: one for ref, one in after.items() if before.get(ref) != one})
    if os.fsencode(REMOTE + terms.branch) in after:
        return []
    return [f"{terms.url} has no branch {terms.branch!r} any more"]


def read_boundary(git_dir: Path) -> bytes | None:
    """Return where the history of a shallow repository ends; None for one that is whole."""
    try:
        return read_regular(git_dir / SHALLOW)
    except FileNotFoundError:
        return None


def _move_boundary(git_dir: Path, before: bytes | None, after: bytes | None, probe: Probe) -> None:
    """Write where the history of the clone ends, unless another git command has moved that meanwhile.

    Git's own lock is held for it, as a second name of a file of ours: so one that a killed process left is known.
    """
    if before == after:
        return
    draft, lock = git_dir / DRAFT, git_dir / f"{SHALLOW}.lock"
    atomic_write_file(draft, after or b"", mode=0o644, durable=False)
    try:
        lock.hardlink_to(draft)
        probe("fetch.locked")
        if read_boundary(git_dir) != before:
            lock.unlink()
            raise WorkspaceError("another git command fetches at the same time", can_pass=True)
        if after is None:
            (git_dir / SHALLOW).unlink()
            lock.unlink()
        else:
            lock.replace(git_dir / SHALLOW)
    finally:
        draft.unlink()


def _drop_own_lock(git_dir: Path) -> None:
    """Remove the lock that a killed process left; that of another git command stays."""
    draft, lock = git_dir / DRAFT, git_dir / f"{SHALLOW}.lock"
    if draft.exists():
        if lock.exists() and lock.samefile(draft):
            lock.unlink()
        draft.unlink()


def read_refs(git: Git, place: Place, *prefixes: str) -> dict[bytes, bytes]:
    """Return the refs below `prefixes`, without those that only name another one."""
    out = git.run(
        place, "for-each-ref", "--format=%(objectname) %(refname) %(symref)", *prefixes,
        timeout=SHORT_S,
    )  # fmt: skip
    rows = (line.split(b" ") for line in out.splitlines())
    head = os.fsencode(f"{REMOTE}HEAD")
    return {ref: commit for commit, ref, symbolic in rows if not symbolic and ref != head}


def _present(git: Git, place: Place, refs: Refs) -> dict[bytes, bytes]:
    """Those refs whose commits the clone still has."""
    names = b"".join(b"%s\n" % commit for commit in refs.values())
    out = git.run(place, "cat-file", "--batch-check=%(objectname)", data=names, timeout=SHORT_S)
    lines = out.splitlines()
    return {ref: one for (ref, one), said in zip(refs.items(), lines, strict=True) if said == one}


def set_refs(git: Git, dot_git: Path, refs: Refs) -> None:
    """Set refs of the clone, all or none; an empty commit deletes one."""
    if not refs:
        return
    lines = (
        b"update %s\0%s\0\0" % (ref, commit) if commit else b"delete %s\0\0" % ref
        for ref, commit in refs.items()
    )
    git.in_repository(
        str(dot_git), "update-ref", "--no-deref", "--stdin", "-z", data=b"".join(lines),
        doing="the branches of origin cannot be updated",
    )  # fmt: skip


@contextmanager
def borrowing(tools: Tools, root: Path, dot_git: Path, object_format: str) -> Iterator[Place]:
    """A git directory of our own, new, that reads and writes the objects of the clone."""
    own = tools.state_dir.absolute() / FOLDER / f"{store_name(str(root))}.git"
    is_sha1 = object_format == SHA1
    config = CONFIG.format(version=0 if is_sha1 else 1)
    config += "" if is_sha1 else FORMAT.format(name=object_format)
    remove_tree(own)
    make_private(own / "refs", tools.state_dir.absolute())
    atomic_write_file(own / "config", config, durable=False)
    atomic_write_file(own / "HEAD", HEAD, durable=False)
    try:
        yield Place(git_dir=str(own), objects=str(dot_git / "objects"))
    finally:
        remove_tree(own)
