"""One connection to the state database: opened with its settings asserted, its errors in our words.

Foreign errors never leave this module: callers see `StateError` and its kin.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw

from nightherd.db.failure import translate, unusable
from nightherd.errors import InvalidValueError, StateError, StateFileError
from nightherd.next_step import Action, NextStep

OLDEST_SQLITE = (3, 51, 3)
"""Older ones can corrupt a WAL database when it is reset."""

PATIENCE_MS = 30_000
"""How long a statement waits for a program that does not take part in `write.lock`."""

CHECKPOINT_PAGES = 4_000
"""How far the write-ahead log grows before it is copied back: rows in use are then copied once, not often."""

CACHE_KIB = -16_000
"""Memory for pages while writing (negative: in KiB), so that a long history is not read again and again."""

INVALID_TEXT = "INVALID_TEXT"
"""The code of the error for a text that is not valid UTF-8."""

Value = str | int | float | bytes | None
Values = Sequence[Value]


class Database:
    """One open connection. One statement per call; safe to use from one thread at a time."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    def execute(self, statement: str, values: Values = ()) -> list[tuple[Value, ...]]:
        """All rows of one statement."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except apsw.Error as error:
            raise translate(error, str(self.path), "execute") from error
        except OverflowError as error:
            raise InvalidValueError("a number that is too large to be stored") from error
        except UnicodeDecodeError as error:
            raise StateFileError(
                f"{self.path} has a text that is not valid UTF-8",
                path=str(self.path),
                operation="read",
                code=INVALID_TEXT,
                hint="repair the row",
                next_step=NextStep(Action.REPAIR_STATE),
            ) from error

    def readable(self, statement: str, values: Values = ()) -> list[tuple[Value, ...]]:
        """Return the rows of one query, without those that have a text that is not valid UTF-8."""
        rows: list[tuple[Value, ...]] = []
        try:
            cursor = self._connection.execute(statement, values)
            while True:
                try:
                    rows.append(next(cursor))
                except UnicodeDecodeError:
                    continue  # the cursor stands at the next row
                except StopIteration:
                    return rows
        except apsw.Error as error:
            raise translate(error, str(self.path), "execute") from error

    def raw(
        self, query: str, columns: Sequence[str], values: Values = ()
    ) -> list[tuple[Value, ...]]:
        """Return these columns of the rows of one query; each text as the bytes that are stored."""
        wanted = ", ".join(
            f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END"
            for name in columns
        )
        return self.execute(f"SELECT {wanted} FROM (\n{query.rstrip().rstrip(';')}\n)", values)

    def data_version(self) -> int:
        """Return a number that changes whenever another connection has written since the last call."""
        return int(str(self.execute("PRAGMA data_version")[0][0]))

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; some failures end it without being asked to."""
        return self._connection.in_transaction

    def back_up(self, target: Path) -> None:
        """Write a whole, consistent copy to `target`, replacing what is there."""
        target.unlink(missing_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        try:
            with (
                closing(apsw.Connection(str(target))) as copy,
                copy.backup("main", self._connection, "main") as backup,
            ):
                while not backup.done:
                    backup.step(1000)
        except apsw.Error as error:
            raise translate(error, str(target), "back up") from error

    def copy_to_memory(self) -> Database:
        """A whole, consistent copy that no file holds, for its one owner."""
        copy = apsw.Connection(":memory:")
        try:
            with copy.backup("main", self._connection, "main") as backup:
                while not backup.done:
                    backup.step(1000)
        except apsw.Error as error:
            copy.close(force=True)
            raise translate(error, str(self.path), "read") from error
        return Database(copy, self.path)

    def close(self) -> None:
        """Give the connection back; harmless the second time."""
        try:
            self._connection.close()
        except apsw.Error as error:
            raise translate(error, str(self.path), "close") from error


def open_for_writing(path: Path) -> Database:
    """The database at `path`, made if it is not there, ready for transactions."""
    try:
        # SQLite would create it readable by everyone; -wal and -shm take their mode from it.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise unusable(error, path, "open") from error
    database = _connect(path, str(path), apsw.SQLITE_OPEN_READWRITE)
    try:
        _set(database, "journal_mode", "wal")
        _set(database, "foreign_keys", 1)
        _set(database, "synchronous", 2)
        _set(database, "wal_autocheckpoint", CHECKPOINT_PAGES)
        _set(database, "cache_size", CACHE_KIB)
    except BaseException:
        database.close()
        raise
    return database


def open_for_reading(path: Path) -> Database | None:
    """The database at `path` for questions only, or None when there is none yet. Creates nothing."""
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if found.st_size == 0:
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(error, path, "read") from error
    if not os.access(path, os.R_OK):
        raise unusable(PermissionError(13, "Permission denied"), path, "read")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    if not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists():
        # Nothing writes it and no side files can be made: the file alone has every row.
        return _connect(path, f"{path.absolute().as_uri()}?immutable=1", flags)
    return _connect(path, path.absolute().as_uri(), flags)


def open_immutable(path: Path) -> Database:
    """The database at `path` for questions only. Takes no lock and makes no file beside it: nothing may write it meanwhile."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return _connect(path, f"{path.absolute().as_uri()}?immutable=1", flags)


def set_synchronous(database: Database, *, is_durable: bool) -> None:
    """Whether commits from here on survive a power cut, or only the death of any process."""
    database.execute("PRAGMA synchronous = FULL" if is_durable else "PRAGMA synchronous = NORMAL")


def sqlite_version() -> tuple[str, bool]:
    """The SQLite in use, and whether it is one that does not damage databases."""
    version = apsw.sqlite_lib_version()
    return version, tuple(int(part) for part in version.split(".")) >= OLDEST_SQLITE


def _connect(path: Path, name: str, flags: int) -> Database:
    version, is_safe = sqlite_version()
    if not is_safe:
        needed = ".".join(str(part) for part in OLDEST_SQLITE)
        raise StateError(
            f"SQLite {version} can damage databases; {needed} or newer is needed",
            code="SQLITE_TOO_OLD",
            hint="reinstall nightherd so that its own apsw is used",
        )
    connection: apsw.Connection | None = None
    try:
        connection = apsw.Connection(name, flags=flags)
        connection.set_busy_timeout(PATIENCE_MS)
        # Statements are compiled once, not again whenever a value is bound that a partial index could mind.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        # The first read is what finds out that a file is not a database.
        connection.execute("PRAGMA schema_version").fetchall()
    except apsw.Error as error:
        # A kept error must not keep the file open.
        if connection is not None:
            connection.close(force=True)
        raise translate(error, str(path), "open") from error
    return Database(connection, path)


def _set(database: Database, pragma: str, wanted: str | int) -> None:
    database.execute(f"PRAGMA {pragma} = {wanted}")
    found = database.execute(f"PRAGMA {pragma}")[0][0]
    if found != wanted:
        raise StateError(
            f"{database.path}: {pragma} is {found!r}, not {wanted!r}",
            path=str(database.path),
            code="PRAGMA",
            hint="state directories need a local filesystem that supports shared memory",
        )
