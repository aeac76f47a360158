"""Taking snapshots: the files of a workspace become a git tree in our own store.

The index of the snapshots remembers what each file looked like, so only files that changed are read. Files are stored
byte for byte. What an agent does meanwhile cannot fail a snapshot: a file that changes under it is looked at again.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import msgspec

from nightherd.errors import WorkspaceError
from nightherd.ports import Probe
from nightherd.ports.world import no_probe
from nightherd.workspaces.git import FULL, SHORT_S, Output, split
from nightherd.workspaces.record import Last, identity_of
from nightherd.workspaces.scan import Scan, Tracked, Update, WorkTree

PATIENT_TRIES = 3
"""How often a changing tree is scanned again before the file in the way is left out."""
MOST_TRIES = 50
MANY = 100
"""From so many new files on, the index is settled before the next snapshot."""
FORCE_REMOVE = ("update-index", "-z", "--force-remove", "--stdin")
ADD = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
DAMAGED = re.compile(
    rb"index file corrupt|bad signature|index file smaller|bad index|unknown index entry format"
    rb"|malformed|unordered stage|index uses .* extension|cannot be mapped|unable to map index"
    rb"|invalid index|shared index|cache entries out of order"
)
SHA1_LENGTH = 40
CONVERTED = ("eol", "ident", "working-tree-encoding")
"""Attributes that make a checkout write other bytes than the repository has."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot that is in the store."""

    tree: str
    changed: int = 0
    left_out: tuple[str, ...] = ()
    is_unsettled: bool = False


def take(
    work_tree: WorkTree,
    *,
    last: Last | None = None,
    known_tree: str | None = None,
    probe: Probe = no_probe,
) -> Taken:
    """Take a snapshot after the `last` one. Without that, `known_tree` is any earlier one, if there is one."""
    return _Taking(work_tree, last, known_tree, probe).run()


class _Taking:
    """One snapshot."""

    def __init__(
        self, work_tree: WorkTree, last: Last | None, known_tree: str | None, probe: Probe
    ) -> None:
        self._tree, self._index, self._probe = work_tree, work_tree.index, probe
        self._last = last
        self._known = last.tree if last is not None else known_tree
        self._is_unsettled = last is not None and last.is_unsettled

    def run(self) -> Taken:
        self._clear_lock()
        if not self._index.is_file():
            self._rebuild()
        if self._is_unsettled:
            self._settle()
        update = self._update()
        is_same = not update.removed and not update.added
        if is_same and self._last is not None and self._last.index == identity_of(self._index):
            tree = self._last.tree
        else:
            tree = self._write_tree()
        return Taken(
            tree=tree,
            changed=self._count(tree),
            left_out=tuple(sorted(update.left_out)),
            is_unsettled=self._is_unsettled or len(update.added) > MANY,
        )

    def _update(self) -> Update:
        """Bring the index up to date; return what that took."""
        refused: set[str] = set()
        for number in count(1):
            update = self._tree.select(self._scan(), refused)
            self._probe("snapshot.scanned")
            update = self._without_same(update)
            failed = self._apply(update)
            if failed is None:
                return update
            if number >= MOST_TRIES:
                raise self._error(failed, "they change faster than they can be read")
            if number >= PATIENT_TRIES:
                refused |= _refused(failed, update)
        raise AssertionError("counting has no end")

    def _scan(self) -> Scan:
        scan = self._tree.scan()
        if isinstance(scan, Scan):
            return scan
        if not DAMAGED.search(scan.err):
            raise self._error(scan)
        self._rebuild()
        scan = self._tree.scan()
        if isinstance(scan, Scan):
            return scan
        raise self._error(scan)

    def _apply(self, update: Update) -> Output | None:
        """Write removed and added files to the index; how git ended, if it could not."""
        if update.removed:
            data = _joined(update.removed)
            done = self._tree.attempt(self._tree.writing, *FORCE_REMOVE, data=data)
            if done.status != 0:
                raise self._error(done)
            self._probe("snapshot.removed")
        if update.added:
            data = _joined([_path(change) for change in update.added])
            done = self._tree.attempt(self._tree.writing, *ADD, data=data)
            if done.status != 0:
                self._clear_lock()
                if done.is_timed_out or done.status < 0 or FULL.search(done.err):
                    raise self._error(done)
                return done
            self._probe("snapshot.added")
        return None

    def _without_same(self, update: Update) -> Update:
        """Drop files that are what a checkout of the index would write.

        Line endings and encodings may make them differ from the repository's bytes, and a new time makes git look.
        """
        tracked = [change for change in update.added if isinstance(change, Tracked)]
        same = _same_as_checked_out(self._tree, tracked) if tracked else set[str]()
        if not same:
            return update
        self._refresh()
        added = [change for change in update.added if _path(change) not in same]
        return Update(removed=update.removed, added=added, left_out=update.left_out)

    def _settle(self) -> None:
        """Write the index again when time has passed, so that git need not read the files it was written with."""
        before = self._index.stat().st_mtime
        self._refresh("--force-write-index")
        self._is_unsettled = int(self._index.stat().st_mtime) <= int(before)
        self._probe("snapshot.settled")

    def _refresh(self, *more: str) -> None:
        # Ends with 1 when files differ, which is not asked here.
        arguments = ("update-index", "-q", "--refresh", *more)
        done = self._tree.attempt(self._tree.checkout, *arguments)
        if done.status not in (0, 1) and not DAMAGED.search(done.err):
            raise self._error(done)

    def _rebuild(self) -> None:
        """Make the index anew from the last tree; the next scan then reads every file."""
        draft = self._index.with_name(f"{self._index.name}.new")
        draft.unlink(missing_ok=True)
        place = self._tree.store.reading(index=str(draft))
        source = (self._known,) if self._known is not None else ("--empty",)
        self._tree.git.run(place, "read-tree", *source, doing="an index cannot be made again")
        draft.replace(self._index)
        self._probe("snapshot.rebuilt")

    def _clear_lock(self) -> None:
        """Remove git's lock of the index: its holder is dead, since a workspace has one owner."""
        self._index.with_name(f"{self._index.name}.lock").unlink(missing_ok=True)

    def _write_tree(self) -> str:
        # Objects of unchanged files may be in the user's repository only: that they are missing here is no error.
        done = self._tree.attempt(self._tree.writing, "write-tree", "--missing-ok")
        if done.status != 0:
            raise self._error(done)
        self._probe("snapshot.written")
        return done.out.decode().strip()

    def _count(self, tree: str) -> int:
        """How many paths differ from the snapshot before."""
        if self._known is None or tree == self._known:
            return 0
        arguments = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", self._known, tree)
        done = self._tree.git.attempt(self._tree.store.reading(), *arguments, timeout=SHORT_S)
        return done.out.count(b"\0")

    def _error(self, done: Output, reason: str | None = None) -> WorkspaceError:
        doing = "the files cannot be snapshotted" + (f", {reason}" if reason else "")
        return self._tree.git.error(done, self._tree.writing, ("update-index",), doing)


def _path(change: Tracked | str) -> str:
    return change.path if isinstance(change, Tracked) else change


def _joined(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _refused(failed: Output, update: Update) -> set[str]:
    """The files that git said it cannot take; all of them when it named none."""
    paths = [_path(change) for change in update.added]
    named = {path for path in paths if b"path " + os.fsencode(path) + b"\n" in failed.err}
    return named or set(paths)


def _same_as_checked_out(work_tree: WorkTree, tracked: Sequence[Tracked]) -> set[str]:
    """The files whose bytes a checkout of the index would write, though the repository has others."""
    place = work_tree.checkout
    data = _joined([change.path for change in tracked])
    done = work_tree.attempt(place, "check-attr", "-z", "--stdin", *CONVERTED, data=data)
    if done.status != 0:
        return set()
    fields = split(done.out)
    triples = zip(fields[::3], fields[1::3], fields[2::3], strict=True)
    converted = {path for path, _, value in triples if value not in ("unspecified", "unset")}
    return {
        change.path
        for change in tracked
        if change.path in converted and _is_checked_out(work_tree, change)
    }


def _is_checked_out(work_tree: WorkTree, change: Tracked) -> bool:
    content = _content(work_tree.top / change.path)
    if content is None or change.blob == _blob(content, len(change.blob)):
        return False
    arguments = ("cat-file", "--filters", f"--path={change.path}", change.blob)
    written = work_tree.attempt(work_tree.checkout, *arguments)
    return written.status == 0 and written.out == content


def _blob(content: bytes, length: int) -> str:
    """The name that git gives to these bytes."""
    algorithm = "sha1" if length == SHA1_LENGTH else "sha256"
    digest = hashlib.new(algorithm, b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def _content(path: Path) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read()
    except OSError:
        return None
