"""Checkup: what can be wrong with a state directory's files, its disk and its database."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from nightherd.db.connection import Database, open_for_reading, sqlite_version
from nightherd.db.ledger import Ledger
from nightherd.db.queries import Queries
from nightherd.db.schema import known_schema, schema_number
from nightherd.errors import StateError
from nightherd.files.temp_files import find_stale_temp_files
from nightherd.model.finding import Finding, Level
from nightherd.model.size import format_size
from nightherd.ports import no_probe
from nightherd.state.agreement import differences
from nightherd.state.directory import StateDirectory, filesystem_of, is_network_filesystem

SPARE_BYTES = 1 << 30
LEAST_BYTES = 100 << 20
PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700


class Checkup:
    """Looks at one state directory; changes nothing."""

    def __init__(self, root: Path) -> None:
        self._directory = StateDirectory(root=root)

    def directory(self) -> Iterator[Finding]:
        """Directories that are missing."""
        for path in self._directory.directories:
            if not path.is_dir():
                yield Finding(
                    check="directory",
                    level=Level.PROBLEM,
                    message=f"{path} is missing or not a directory",
                    path=str(path),
                    remedy="it is made again",
                    is_fixable=not path.exists(),
                )

    def permissions(self) -> Iterator[Finding]:
        """Files and directories that others can read: they hold prompts and answers."""
        for path in self._everything():
            wanted = PRIVATE_DIRECTORY if path.is_dir() else PRIVATE_FILE
            try:
                mode = path.stat().st_mode & 0o777
            except OSError:
                continue
            if mode & ~wanted:
                yield Finding(
                    check="permissions",
                    level=Level.WARNING,
                    message=f"{path} has mode {mode:04o}; {wanted:04o} keeps it to its owner",
                    path=str(path),
                    remedy=f"chmod {wanted:o}",
                    is_fixable=True,
                )

    def temp_files(self, now: datetime) -> Iterator[Finding]:
        """Temporary files that a killed writer left."""
        places = [path for path in self._everything() if path.is_dir()]
        for path in find_stale_temp_files(places, now=now):
            yield Finding(
                check="temp-files",
                level=Level.WARNING,
                message=f"{path} was left by a writer that was killed; the file it was for is whole",
                path=str(path),
                remedy="it is deleted",
                is_fixable=True,
            )

    def filesystem(self) -> Iterator[Finding]:
        """A filesystem on which locks do not hold."""
        kind = filesystem_of(self._directory.root)
        if is_network_filesystem(kind):
            yield Finding(
                check="filesystem",
                level=Level.PROBLEM,
                message=f"the state directory is on a network filesystem ({kind}): locks do not hold there",
                path=str(self._directory.root),
                remedy="move it to a local disk (--state-dir)",
            )

    def disk(self) -> Iterator[Finding]:
        """A disk that is full, or nearly."""
        usage = shutil.disk_usage(self._directory.root)
        if usage.free < SPARE_BYTES and usage.free < usage.total // 20:
            yield Finding(
                check="disk",
                level=Level.PROBLEM if usage.free < LEAST_BYTES else Level.WARNING,
                message=f"{format_size(usage.free)} of {format_size(usage.total)} are free",
                path=str(self._directory.root),
                remedy="make room: jobs fail when their journal cannot be written",
            )

    def sqlite(self) -> Iterator[Finding]:
        """A SQLite that can damage databases."""
        version, is_safe = sqlite_version()
        if not is_safe:
            yield Finding(
                check="sqlite",
                level=Level.PROBLEM,
                message=f"SQLite {version} can damage databases",
                remedy="reinstall nightherd so that its own SQLite is used",
            )

    def database(self) -> Iterator[Finding]:
        """A database that cannot be opened or is damaged where it is looked at quickly."""
        yield from self._database("quick_check")

    def whole_database(self) -> Iterator[Finding]:
        """A database that is damaged anywhere, or whose rows point to nothing."""
        yield from self._database("integrity_check")

    def ledger(self) -> Iterator[Finding]:
        """A ledger whose end cannot be read, or that is missing although there are rows."""
        try:
            recorded = Ledger(self._directory.ledger, no_probe).last_change()
        except StateError as error:
            yield self._damaged_ledger(error)
            return
        database = self._open()
        if isinstance(database, Finding) or database is None:
            return
        try:
            span = database.execute(Queries()["outbox_span"])[0]
        except StateError:
            return  # the check of the database says what is wrong with it
        finally:
            database.close()
        first, last = (int(str(number)) for number in span)
        if first > recorded + 1:
            yield Finding(
                check="ledger",
                level=Level.PROBLEM,
                message=f"the ledger ends at change {recorded}, the database is at {last}",
                path=str(self._directory.ledger),
                remedy="put the missing ledger files back",
            )

    def agreement(self, now: datetime) -> Iterator[Finding]:
        """Rows that the ledger, replayed, does not give again."""
        database = self._open()
        if isinstance(database, Finding) or database is None:
            return  # the check of the database says what is wrong with it
        database.close()
        try:
            found = differences(self._directory.root, at=now)
        except StateError as error:
            yield self._damaged_ledger(error)
            return
        for difference in found:
            yield Finding(
                check="agreement",
                level=Level.PROBLEM,
                message=f"{difference.table} {difference.key} is not what the ledger says",
                path=str(self._directory.database),
                remedy="nightherd doctor --rebuild makes the database again from the ledger",
            )

    def _database(self, pragma: str) -> Iterator[Finding]:
        database = self._open()
        if database is None:
            return
        if isinstance(database, Finding):
            yield database
            return
        try:
            found = schema_number(database, Queries())
            if found > known_schema():
                yield self._unusable(f"written by a newer nightherd (schema {found})", "upgrade")
                return
            for (said,) in database.execute(f"PRAGMA {pragma}(10)"):
                if said != "ok":
                    yield self._unusable(str(said))
            for table, row, parent, _ in database.execute("PRAGMA foreign_key_check"):
                yield self._unusable(f"row {row!s} of {table!s} points to nothing in {parent!s}")
        except StateError as error:
            yield self._unusable(error.message)
        finally:
            database.close()

    def _open(self) -> Database | Finding | None:
        """The database, None when there is none, or what is wrong with it."""
        try:
            return open_for_reading(self._directory.database)
        except StateError as error:
            return self._unusable(error.message)

    def _unusable(self, message: str, remedy: str | None = None) -> Finding:
        return Finding(
            check="database",
            level=Level.PROBLEM,
            message=f"the database is not usable: {message}",
            path=str(self._directory.database),
            remedy=remedy or "nightherd doctor --rebuild makes it again from the ledger",
        )

    def _damaged_ledger(self, error: StateError) -> Finding:
        return Finding(
            check="ledger",
            level=Level.PROBLEM,
            message=f"the ledger cannot be read: {error.message}",
            path=error.path,
            remedy="restore the file from a backup; the database still has every row",
        )

    def _everything(self) -> Iterator[Path]:
        for folder, directories, files in os.walk(self._directory.root):
            yield Path(folder)
            for name in files:
                yield Path(folder) / name
            directories.sort()
