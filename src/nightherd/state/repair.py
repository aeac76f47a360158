"""Repair: fixes what a checkup found. Only temporary files are deleted."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from nightherd.db.lock import WriteLock
from nightherd.decoding import decode_json
from nightherd.engine.doctor.doctor import Check, OnStep
from nightherd.errors import RefusedError
from nightherd.files.atomic import append_jsonl
from nightherd.files.permission import state_file_error
from nightherd.files.regular import read_regular
from nightherd.model.doctor import Finding
from nightherd.ports import Clock
from nightherd.state.checkup import PRIVATE_DIRECTORY, PRIVATE_FILE, Checkup, intruders, put_aside
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.fresh_ledger import begin_ledger
from nightherd.state.layout import NOTED_DAMAGE
from nightherd.state.rebuild import REBUILT
from nightherd.state.row_repair import damaged_rows, repair_rows, restore_row
from nightherd.state.soundness import Soundness
from nightherd.state.store import SqliteStore


class Repair:
    """Puts one state directory right, finding by finding."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._directory = StateDirectory(root=root)
        self._clock = clock

    async def directory(self, finding: Finding) -> None:
        """Make what is missing."""
        init_state_directory(self._directory.root)

    async def permissions(self, finding: Finding) -> None:
        """Keep a file to its owner."""
        path = self._named(finding)
        try:
            path.chmod(PRIVATE_DIRECTORY if path.is_dir() else PRIVATE_FILE)
        except OSError as error:
            raise state_file_error(error, path, "chmod") from error

    async def temp_file(self, finding: Finding) -> None:
        """Delete a temporary file, or a copy of the database that is not in use."""
        path = self._named(finding)
        try:
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name.startswith(REBUILT):
                self._delete_copy(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise state_file_error(error, path, "delete") from error

    async def ledger(self, finding: Finding) -> None:
        """The database gets back what it lost; a ledger that is damaged starts again."""
        if finding.path == str(self._directory.database):
            store = SqliteStore(self._directory.root, self._clock)
            try:
                await store.catch_up()
            finally:
                await store.close()
        else:
            begin_ledger(self._directory.root, at=self._clock.now())

    async def agreement(self, finding: Finding) -> None:
        """Write a row again as the ledger has it; a ledger that is damaged starts again."""
        if finding.row is None:
            await self.ledger(finding)
        else:
            restore_row(self._directory.root, *finding.row, at=self._clock.now())

    def _delete_copy(self, path: Path) -> None:
        """The process that makes such a copy holds the lock."""
        lock = WriteLock(self._directory.write_lock, notice=lambda text: None)
        with closing(lock), lock:
            path.unlink(missing_ok=True)

    def _named(self, finding: Finding) -> Path:
        path = Path(finding.path or "")
        if path.is_symlink() or not path.is_relative_to(self._directory.root):
            raise RefusedError(f"{path} is not in the state directory")
        return path


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    at: datetime
    job_id: str | None = None
    message: str


class NotedDamage:
    """What has been noted in one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / NOTED_DAMAGE

    def read(self) -> Mapping[str, str]:
        """What was found, and the day it was noted."""
        if not self._path.exists():
            return {}
        found: dict[str, str] = {}
        for line in read_regular(self._path).splitlines():
            try:
                noted = decode_json(line, Noted)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            found[noted.message] = noted.at.date().isoformat()
        return found

    def add(self, damage: Iterable[tuple[str | None, str]], at: datetime) -> None:
        """Note it: whose, and what."""
        for job_id, message in damage:
            append_jsonl(
                self._path, msgspec.to_builtins(Noted(at=at, job_id=job_id, message=message))
            )


REPLAYED = "ledger replayed"


def state_checks(
    root: Path, clock: Clock, now: datetime, on_step: OnStep
) -> tuple[list[Check], list[Check]]:
    """The quick checks, and those that read everything."""
    checkup, soundness, repair = Checkup(root), Soundness(root), Repair(root, clock)
    temp_files = partial(checkup.temp_files, now)
    agreement = partial(soundness.agreement, now, partial(on_step, REPLAYED))
    quick = [
        Check("sqlite", "SQLite", soundness.sqlite),
        Check("filesystem", "filesystem", checkup.filesystem),
        Check("disk", "free space", checkup.disk),
        Check("files", "files", partial(intruders, root), partial(put_aside, root, clock)),
        Check("directory", "directories", checkup.directory, repair.directory),
        Check("permissions", "permissions", checkup.permissions, repair.permissions),
        Check("temp-files", "temporary files", temp_files, repair.temp_file),
        Check(
            "rows",
            "rows",
            partial(damaged_rows, root),
            repair_all=partial(repair_rows, root, clock),
        ),
        Check("database", "database", soundness.database),
        Check("ledger", "ledger", soundness.ledger, repair.ledger),
    ]
    deep = [
        Check("whole-database", "database, every page", soundness.whole_database, is_deep=True),
        Check("agreement", REPLAYED, agreement, repair.agreement, is_deep=True),
    ]
    return quick, deep
