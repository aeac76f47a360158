"""The state directory: made whole, checked, and kept to its owner."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from nightherd.db.failure import errno_name, explain
from nightherd.errors import StateDirectoryCreateError, StateDirectoryValidationError
from nightherd.files.atomic import sync_directory, temp_path_for
from nightherd.state import layout

NETWORK_FILESYSTEMS = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
    )
)
NETWORK_FUSE = (
    "fuse.sshfs",
    "fuse.s3fs",
    "fuse.gcsfuse",
    "fuse.rclone",
    "fuse.glusterfs",
    "fuse.ceph",
)
MOUNTS = Path("/proc/self/mounts")
ELSEWHERE = "choose another place: --state-dir DIR"


class StateDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """Where everything of a state directory is. Making this value touches nothing."""

    root: Path

    @property
    def database(self) -> Path:
        """The rows (SQLite)."""
        return self.root / layout.DATABASE

    @property
    def write_lock(self) -> Path:
        """Held by the process that writes the database or the ledger."""
        return self.root / layout.WRITE_LOCK

    @property
    def jobs(self) -> Path:
        """Journals, one file per job."""
        return self.root / layout.JOBS

    @property
    def sessions(self) -> Path:
        """Session files for people and other tools."""
        return self.root / layout.SESSIONS

    @property
    def logs(self) -> Path:
        """Operator logs, one file per agent."""
        return self.root / layout.LOGS

    @property
    def ledger(self) -> Path:
        """Every committed change, one file per month."""
        return self.root / layout.LEDGER

    @property
    def blobs(self) -> Path:
        """Big bodies that journals name by hash."""
        return self.root / layout.BLOBS

    @property
    def state_file(self) -> Path:
        """The fleet's state for people; derived, never read by nightherd."""
        return self.root / layout.STATE_FILE

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directories that have to be there, the root first."""
        return (self.root, self.jobs, self.sessions, self.logs, self.ledger, self.blobs)


def init_state_directory(root: Path, *, mounts: Path = MOUNTS) -> StateDirectory:
    """Make the state directory at `root` whole: what is missing is made, what is there stays as it is.

    Directories are open to their owner only. `StateDirectoryCreateError` when it cannot be made, with the
    operating system's code; nothing is made on a network filesystem.
    """
    directory = StateDirectory(root=Path(os.path.abspath(root)))  # noqa: PTH100 - links stay as they are
    for path in directory.directories:
        _refuse_dangling(path)
    _refuse_network(directory.root, mounts)
    made = [path for path in directory.directories if _make(path)]
    _write_gitignore(directory.root / layout.GITIGNORE)
    if made:
        _sync_names(directory.root)
    return validate_state_directory(directory.root)


def made_at(root: Path) -> datetime | None:
    """When the state directory was made on this machine, by the file that is written once; a copy is new."""
    try:
        return datetime.fromtimestamp((root / layout.GITIGNORE).lstat().st_ctime, UTC)
    except OSError:
        return None


def validate_state_directory(root: Path) -> StateDirectory:
    """The state directory at `root` if it is whole, else `StateDirectoryValidationError` with what is missing."""
    directory = StateDirectory(root=Path(root))
    missing = [str(path) for path in directory.directories if not path.is_dir()]
    if missing:
        names = ", ".join(f"'{path}'" for path in missing)
        raise StateDirectoryValidationError(
            f"The state directory is incomplete: {names} missing or not a directory.",
            missing_paths=missing,
        )
    return directory


def filesystem_of(path: Path, mounts: Path = MOUNTS) -> str | None:
    """The type of the filesystem that `path`, or the nearest directory above it that exists, is on."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    real = Path(os.path.realpath(path))
    found: tuple[int, str] | None = None
    for line in lines:
        _, point, kind, *_ = line.split(" ")
        mounted = Path(point.encode().decode("unicode_escape"))
        # The longest mount point above the path wins; of equal ones the later lies on top.
        if real.is_relative_to(mounted) and (found is None or len(mounted.parts) >= found[0]):
            found = (len(mounted.parts), kind)
    return found[1] if found is not None else None


def is_network_filesystem(kind: str | None) -> bool:
    """Whether a filesystem of this type is another machine's, where locks do not hold."""
    return kind is not None and (kind in NETWORK_FILESYSTEMS or kind.startswith(NETWORK_FUSE))


def _refuse_dangling(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise StateDirectoryCreateError(
            f"'{path}' is a link to {path.readlink()}, which does not exist.",
            path=str(path),
            code="ENOENT",
            hint="make the directory it names, or remove the link",
        )


def _refuse_network(root: Path, mounts: Path) -> None:
    kind = filesystem_of(root, mounts)
    if is_network_filesystem(kind):
        raise StateDirectoryCreateError(
            f"'{root}' is on a network filesystem ({kind}), where locks do not hold.",
            path=str(root),
            code="ENETFS",
            hint="keep the state directory on a local disk (--state-dir)",
        )


def _sync_names(root: Path) -> None:
    """What is synced inside a directory is lost in a power cut when the directory's own name is."""
    try:
        for path in (root, root.parent):
            sync_directory(path)
    except OSError as error:
        raise StateDirectoryCreateError(
            explain(error, root), path=str(root), code=errno_name(error)
        ) from error


def _make(path: Path) -> bool:
    """Make the directory; whether it was not there."""
    is_new = not path.is_dir()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except FileNotFoundError as error:
        raise StateDirectoryCreateError(
            f"Cannot create '{path}': nothing can be made there.",
            path=str(path),
            code=errno_name(error),
            hint=ELSEWHERE,
        ) from error
    except OSError as error:
        raise StateDirectoryCreateError(
            explain(error, path), path=str(path), code=errno_name(error), hint=ELSEWHERE
        ) from error
    return is_new


def _write_gitignore(path: Path) -> None:
    """State is never committed: it holds prompts and answers. Whole or not at all, for it is written once."""
    if path.exists() or path.is_symlink():
        return
    draft = temp_path_for(path)
    try:
        draft.touch(0o600, exist_ok=False)
        draft.write_bytes(b"*\n")
        draft.rename(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StateDirectoryCreateError(
            explain(error, path), path=str(path), code=errno_name(error)
        ) from error


def last_written(root: Path) -> datetime | None:
    """When database or ledger was last written, by the disk's own word; None when neither is there."""
    times = []
    for path in (root / "nightherd.db", *(root / "ledger").glob("*.jsonl")):
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC) if times else None
