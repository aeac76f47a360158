"""Record: what nightherd keeps about one workspace beside its directory, and the lock that gives it one owner.

<state directory>/workspaces/<id>/
    lock        held by the process that makes, snapshots or removes it, and by its git commands
    making      there while the directory is being made: what is in it then is nobody's work
    made.json   where it came from
    index       git's index of its snapshots; the last file that making writes
    last.json   the last snapshot
    setup.json  the setup commands that it has had
<state directory>-workspaces/<id>/      the directory itself
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from nightherd.decoding import convert, decode_json
from nightherd.errors import StateError, WorkspaceError
from nightherd.files.atomic import atomic_write_file
from nightherd.files.permission import make_private
from nightherd.workspaces.git import failure

FOLDER = "workspaces"
SETUP = "setup.json"
IGNORE_ALL = "*\n"
PATIENCE_S = 60.0
"""How long a process waits for the owner; a git command of a killed process may still be writing."""
PAUSE_S = 0.05


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a workspace came from; known from the moment it is made."""

    origin: str
    store: str
    top: str
    """Its directory when it was made, to notice that the state directory was moved or copied."""
    prefix: str = ""
    common_dir: str | None = None
    branch: str | None = None
    base: str | None = None
    base_commit: str | None = None
    base_tree: str | None = None


class Last(msgspec.Struct, frozen=True, kw_only=True):
    """The last snapshot, valid as long as the index is the same file."""

    tree: str
    index: tuple[int, int, int]
    """Inode, size and time of the index."""
    head: str | None = None
    """The commit that `refs/nightherd/<id>/head` keeps."""
    is_unsettled: bool = False
    """Whether many files are as young as the index, so that git has to read them to know them unchanged."""


class Record:
    """Our files about one workspace."""

    def __init__(self, state_dir: Path, workspace_id: str) -> None:
        # Normal: git knows worktrees by such paths.
        state_dir = Path(os.path.abspath(state_dir))  # noqa: PTH100 (pathlib keeps `..`)
        self.directories = state_dir.with_name(f"{state_dir.name}-{FOLDER}")
        self.top = self.directories / workspace_id
        self.removing = self.directories / f"{workspace_id}.removing"
        self.folder = state_dir / FOLDER / workspace_id
        self.index = self.folder / "index"
        self._making = self.folder / "making"
        self._origin = self.folder / "made.json"
        self._last = self.folder / "last.json"

    @property
    def draft(self) -> Path:
        """The index while the workspace is being made."""
        return self.folder / "draft"

    @property
    def is_made(self) -> bool:
        """Whether making it came to its end, once."""
        return self.index.is_file()

    @property
    def is_half_made(self) -> bool:
        """Whether making it began and came to no end."""
        return self._making.exists() and not self.is_made

    @property
    def has_directory(self) -> bool:
        """Whether its directory is there: a real one, not a link that stands in its place."""
        try:
            return stat.S_ISDIR(self.top.lstat().st_mode)
        except OSError:
            return False

    def begin(self) -> None:
        """Say that it is being made; what is there of it counts as half made from now on."""
        try:
            self.directories.mkdir(parents=True, exist_ok=True, mode=0o700)
            ignore = self.directories / ".gitignore"
            if not ignore.exists():
                atomic_write_file(ignore, IGNORE_ALL, mode=0o644, durable=False)
            # Nothing here is synced: that would wait for all files of a checkout. The names appear in this order.
            atomic_write_file(self._making, "", durable=False)
            # What setup commands made is gone with the directory: they run again.
            lost = (
                self.index,
                self._last,
                self.draft,
                self.folder / "draft.lock",
                self.folder / SETUP,
            )
            for path in lost:
                path.unlink(missing_ok=True)
        except (OSError, StateError) as error:
            raise failure(error, f"the workspace '{self.top}' cannot be made") from error

    def finish(self, origin: Origin) -> None:
        """Make the draft its index: with that it is made."""
        self.write_origin(origin)
        try:
            self.draft.replace(self.index)
            self._making.unlink(missing_ok=True)
        except OSError as error:
            raise failure(error, f"the workspace '{self.top}' cannot be made") from error

    def write_origin(self, origin: Origin) -> None:
        """Keep where it came from."""
        try:
            content = json.dumps(msgspec.to_builtins(origin))
            atomic_write_file(self._origin, content, durable=False)
        except StateError as error:
            raise failure(error, f"the workspace '{self.top}' cannot be made") from error

    def origin(self) -> Origin | None:
        """Return where it came from; None when that is lost."""
        try:
            # By this codec: paths may hold bytes that are no text, and msgspec refuses those.
            return convert(json.loads(self._origin.read_bytes()), Origin)
        except (OSError, ValueError):
            return None

    def last(self) -> Last | None:
        """Return the last snapshot; None when that is lost."""
        try:
            return decode_json(self._last.read_bytes(), Last)
        except (OSError, ValueError):
            return None

    def remember(self, tree: str, head: str | None, *, is_unsettled: bool = False) -> None:
        """Keep the last snapshot, of the index as it is now. A lost one costs time, nothing else."""
        last = Last(tree=tree, head=head, index=identity_of(self.index), is_unsettled=is_unsettled)
        try:
            atomic_write_file(self._last, msgspec.json.encode(last), durable=False)
        except StateError as error:
            raise failure(error, f"the snapshot of '{self.top}' cannot be kept") from error

    def discard_directory(self, on_renamed: Callable[[], None] = lambda: None) -> None:
        """Remove its directory: renamed first, so that what is half removed is never taken for whole."""
        try:
            remove_tree(self.removing)
            if os.path.lexists(self.top):
                self.top.rename(self.removing)
                on_renamed()
                remove_tree(self.removing)
        except OSError as error:
            raise failure(error, f"'{error.filename or self.top}' cannot be removed") from error

    def forget(self) -> None:
        """Remove all that is kept about it."""
        try:
            self.index.unlink(missing_ok=True)
            remove_tree(self.folder)
        except OSError as error:
            raise failure(error, f"'{self.folder}' cannot be removed") from error

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Own the workspace; yields the descriptor of the lock, for commands that share it."""
        deadline = time.monotonic() + PATIENCE_S
        handle = self._open_lock()
        try:
            while not self._has_lock(handle):
                if time.monotonic() > deadline:
                    message = f"another process works on the workspace '{self.top}'"
                    raise WorkspaceError(message, can_pass=True)
                time.sleep(PAUSE_S)
                os.close(handle)
                handle = self._open_lock()
            yield handle
        finally:
            os.close(handle)

    def _open_lock(self) -> int:
        try:
            make_private(self.folder, self.folder.parent.parent)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            return os.open(self.folder / "lock", flags, 0o600)
        except OSError as error:
            raise failure(error, f"the workspace '{self.top}' cannot be locked") from error

    def _has_lock(self, handle: int) -> bool:
        """Take the lock if it is free, and still the one that others will find."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            known = (self.folder / "lock").stat()
        except (BlockingIOError, FileNotFoundError):
            return False
        return os.path.samestat(known, os.fstat(handle))


def identity_of(index: Path) -> tuple[int, int, int]:
    """Return what tells an index from any other: its inode, size and time."""
    status = index.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def remove_tree(path: Path) -> None:
    """Remove a directory with all it holds, read-only directories too; links are removed, not followed."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        _make_writable(path)
        shutil.rmtree(path)


def _make_writable(directory: Path) -> None:
    """Let the owner remove what is in the directory and below."""
    directory.chmod(stat.S_IRWXU)
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _make_writable(Path(entry.path))
