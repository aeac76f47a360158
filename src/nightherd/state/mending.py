"""Mending: what a checkup found, put right. Nothing is thrown away but temporary files."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

from nightherd.db.lock import WriteLock
from nightherd.errors import RefusedError
from nightherd.files.permission import state_file_error
from nightherd.model.finding import Finding
from nightherd.ports import Clock
from nightherd.state.checkup import PRIVATE_DIRECTORY, PRIVATE_FILE
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.fresh_ledger import begin_ledger
from nightherd.state.rebuild import REBUILT
from nightherd.state.row_repair import restore_row
from nightherd.state.store import SqliteStore


class Mending:
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
        """Delete a temporary file, or a copy of the database that nobody uses."""
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
        """The database gets back what it lost; a ledger that is damaged begins anew."""
        if finding.path == str(self._directory.database):
            store = SqliteStore(self._directory.root, self._clock)
            try:
                await store.catch_up()
            finally:
                await store.close()
        else:
            begin_ledger(self._directory.root, at=self._clock.now())

    async def agreement(self, finding: Finding) -> None:
        """Write a row again as the ledger has it; a ledger that is damaged begins anew."""
        if finding.row is None:
            await self.ledger(finding)
        else:
            restore_row(self._directory.root, *finding.row, at=self._clock.now())

    def _delete_copy(self, path: Path) -> None:
        """Whoever makes such a copy holds the lock."""
        lock = WriteLock(self._directory.write_lock, notice=lambda text: None)
        with closing(lock), lock:
            path.unlink(missing_ok=True)

    def _named(self, finding: Finding) -> Path:
        path = Path(finding.path or "")
        if path.is_symlink() or not path.is_relative_to(self._directory.root):
            raise RefusedError(f"{path} is not in the state directory")
        return path
