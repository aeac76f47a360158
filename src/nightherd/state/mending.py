"""Mending: what a checkup found, put right. Nothing is thrown away but temporary files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from nightherd.db.lock import WriteLock
from nightherd.errors import RefusedError, StateFileError
from nightherd.files.corrupt import keep_aside
from nightherd.files.permission import error_code, permission_error_message
from nightherd.model.finding import Finding
from nightherd.state.checkup import PRIVATE_DIRECTORY, PRIVATE_FILE
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.replay import replay


class Mending:
    """Puts one state directory right, finding by finding."""

    def __init__(self, root: Path) -> None:
        self._directory = StateDirectory(root=root)

    async def directory(self, finding: Finding) -> None:
        """Make what is missing."""
        init_state_directory(self._directory.root)

    async def permissions(self, finding: Finding) -> None:
        """Keep a file to its owner."""
        path = self._named(finding)
        try:
            path.chmod(PRIVATE_DIRECTORY if path.is_dir() else PRIVATE_FILE)
        except OSError as error:
            raise _failed(error, path, "chmod") from error

    async def temp_file(self, finding: Finding) -> None:
        """Delete a temporary file."""
        path = self._named(finding)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _failed(error, path, "delete") from error

    def _named(self, finding: Finding) -> Path:
        path = Path(finding.path or "")
        if not path.is_relative_to(self._directory.root):
            raise RefusedError(f"{path} is not in the state directory")
        return path


def rebuild_database(root: Path, *, at: datetime) -> Sequence[Path]:
    """Make the database again from the ledger, then put it in place of the old one, which is kept aside.

    When this raises, the old database is where it was. The paths the old one has now.
    """
    directory = init_state_directory(root)
    rebuilt = directory.database.with_name(f"{directory.database.name}.rebuilt")
    lock = WriteLock(directory.write_lock, notice=lambda text: None)
    try:
        with lock:
            for suffix in ("", "-wal", "-shm"):
                rebuilt.with_name(rebuilt.name + suffix).unlink(missing_ok=True)
            replay(directory.ledger, rebuilt, at=at)
            kept = [
                keep_aside(path, at)
                for suffix in ("-wal", "-shm", "")
                if (path := directory.database.with_name(directory.database.name + suffix)).exists()
            ]
            rebuilt.rename(directory.database)
    finally:
        lock.close()
    return kept


def _failed(error: OSError, path: Path, operation: str) -> StateFileError:
    code = error_code(error)
    return StateFileError(
        permission_error_message(code, path), path=str(path), operation=operation, code=code
    )
