"""Records of landings: what is going to change, written before it does, so that a killed process can be followed up.

`<state>/landing/<id>.json` is there while a landing is under way; `<state>/landing/<id>/` has its files, before and after.
A lock for each store says whether the process that wrote a record still lives: it holds the lock until the record is gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from nightherd.decoding import convert
from nightherd.errors import WorkspaceError
from nightherd.files.atomic import atomic_write_json, sync_directory
from nightherd.ports.world import Probe
from nightherd.workspaces.landing.files import FileChanges, PathChange, sync_staged

SUFFIX = ".json"
PRIVATE = 0o700


class MovedRef(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that a landing moves."""

    common: str
    """The git directory of the repository."""
    ref: str
    old: str
    new: str
    index: str | None = None
    """The index of the directory that has the branch checked out; None when none has."""
    index_before: str = ""
    """The SHA-256 of that index as it was."""
    staged_index: str = "index"
    """The file that replaces it, among those that are staged."""

    @property
    def lock(self) -> str:
        """The file by which git keeps others from changing the index."""
        return f"{self.index}.lock"


class LandingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a landing changes: files below `top`, and for a merge a branch."""

    id: str
    store: str
    target: str
    """The directory or branch, for people."""
    top: str | None = None
    changes: tuple[PathChange, ...] = ()
    moved: MovedRef | None = None
    """The branch that is merged into. The files are those of the directory that has it checked out."""
    branch: MovedRef | None = None
    """The branch of the workspace, which gets the commit that is merged."""
    is_undone: bool = False
    """Whether what was done so far is to be undone."""


class LandingRecords:
    """The records of a state directory."""

    def __init__(self, state_dir: Path, probe: Probe) -> None:
        self.directory = state_dir / "landing"
        self._probe = probe

    def stage(self, record_id: str) -> Path:
        """Return the directory for the files of a landing; there or not."""
        return self.directory / record_id

    def new_stage(self, record_id: str) -> Path:
        """Make that directory."""
        stage = self.stage(record_id)
        stage.mkdir(parents=True, mode=PRIVATE)
        return stage

    def files(self, record: LandingRecord) -> FileChanges:
        """Return the changes of files, ready to be made, finished or undone."""
        return FileChanges(
            top=Path(record.top or "/"),
            stage=self.stage(record.id),
            changes=record.changes,
            probe=self._probe,
        )

    def write(self, record: LandingRecord) -> None:
        """Put the record down; from here on a killed landing is followed up. Its staged files are on disk before it."""
        self._probe("landing.before_record")
        sync_staged(self.stage(record.id))
        atomic_write_json(self.directory / f"{record.id}{SUFFIX}", msgspec.to_builtins(record))
        self._probe("landing.after_record")

    def has(self, record_id: str) -> bool:
        """Whether there is a record: the landing is not over."""
        return (self.directory / f"{record_id}{SUFFIX}").exists()

    def remove(self, record: LandingRecord) -> None:
        """The landing is over."""
        self._probe("landing.before_removal")
        (self.directory / f"{record.id}{SUFFIX}").unlink(missing_ok=True)
        sync_directory(self.directory)
        self._probe("landing.after_removal")
        self.discard_stage(record.id)

    def discard_stage(self, record_id: str) -> None:
        """Delete the staged files of a landing."""
        shutil.rmtree(self.stage(record_id), ignore_errors=True)

    def stores(self) -> list[str]:
        """Return the stores of landings that left something: a record, or only staged files."""
        if not self.directory.is_dir():
            return []
        names = [path.name for path in self.directory.iterdir()]
        return sorted({name.partition("-")[0] for name in names if "-" in name})

    def left(self, store: str) -> list[Path]:
        """Return the records that killed processes left of a store; ask while holding its lock. Files without one go."""
        records = []
        for path in sorted(self.directory.glob(f"{store}-*")):
            if path.suffix == SUFFIX:
                records.append(path)
            elif not path.with_name(f"{path.name}{SUFFIX}").exists():
                # It was killed before its record was written, or after that was deleted.
                shutil.rmtree(path, ignore_errors=True)
        return records

    def read(self, path: Path) -> LandingRecord:
        """Return a record; `WorkspaceError` when it is damaged."""
        try:
            return convert(json.loads(path.read_bytes()), LandingRecord)
        except (OSError, ValueError) as error:
            raise WorkspaceError(f"it cannot be read: {error}") from error

    @contextmanager
    def locked(self, store: str) -> Iterator[int]:
        """Hold the lock of a store; yield its descriptor. Waits while another process lands something of it."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self.directory / f"{store}.lock", flags, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)
