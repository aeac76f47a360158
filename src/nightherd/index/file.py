"""The index's file: made, opened, and replaced when it is damaged or of another version.

Any number of processes may have it open. Whoever makes or replaces the file holds a lock meanwhile; writing
needs none: each transaction checks that what it continues from is still so.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from nightherd.db.connection import Database, open_for_reading, open_for_writing, set_synchronous
from nightherd.db.failure import unusable
from nightherd.db.migrate import statements
from nightherd.errors import SchemaVersionError, StateFileError

FILE, LOCK = "index.db", "index.lock"
VERSION = 3
"""Of tables, outlines, texts and costs together: an older file is made again."""
DAMAGE = frozenset({"CORRUPT", "NOTADB", "INVALID_TEXT", "SQLError"})
"""Codes of errors that mean that the file itself is bad."""
SQL = Path(__file__).with_name("sql")
CACHE_KIB = -4_000
"""Memory for pages while writing (negative: in KiB): nothing waits for the index."""
SIDE_FILES = ("", "-wal", "-shm", "-journal")


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The index, open for writing, and what there is to say about it."""

    database: Database
    inode: int
    notice: str | None = None

    @property
    def is_current(self) -> bool:
        """Whether it is still the file that others see."""
        return inode_of(self.database.path) == self.inode


def is_damage(error: Exception) -> bool:
    """Whether the error means that the file is bad, and not that the disk or another process is in the way."""
    return isinstance(error, StateFileError) and error.code in DAMAGE


def open_index(root: Path) -> Opened:
    """Return the index of the state directory for writing; made if it is not there, made again if it cannot be used.

    `SchemaVersionError` for one that a newer nightherd has made.
    """
    path = root / FILE
    with locked(root):
        notice = None
        try:
            database = _opened(path)
        except StateFileError as error:
            if not is_damage(error):
                raise
            notice = f"{path.name} was damaged ({error.code}); it is made again from the journals"
            remove_files(path)
            database = _opened(path)
        try:
            version = version_of(database)
            if 0 < version < VERSION:
                notice = f"{path.name} is of an older nightherd; it is made again from the journals"
                database.close()
                remove_files(path)
                database = _opened(path)
                version = 0
            if version == 0:
                _make(database)
            set_synchronous(database, is_durable=False)
            database.execute(f"PRAGMA cache_size = {CACHE_KIB}")
        except BaseException:
            database.close()
            raise
        return Opened(database=database, inode=inode_of(path), notice=notice)


def open_index_for_reading(root: Path) -> Database | None:
    """Return the index for questions; None when there is none that this nightherd can read.

    `SchemaVersionError` for one that a newer nightherd has made.
    """
    database = open_for_reading(root / FILE)
    if database is None:
        return None
    try:
        is_usable = version_of(database) == VERSION
    except BaseException:
        database.close()
        raise
    if not is_usable:
        database.close()
        return None
    return database


def discard_index(root: Path, inode: int | None = None) -> None:
    """Remove the index: the next one who opens it makes it again. With `inode` only while it is that file."""
    with locked(root):
        if inode is None or inode_of(root / FILE) == inode:
            remove_files(root / FILE)


def version_of(database: Database) -> int:
    """Return the version of the file, 0 for an empty one; `SchemaVersionError` for a newer one."""
    version = int(str(database.execute("PRAGMA user_version")[0][0]))
    if version > VERSION:
        raise SchemaVersionError(
            f"{database.path} was written by a newer nightherd: version {version}, this one knows {VERSION}",
            path=str(database.path),
            code="SCHEMA_TOO_NEW",
            hint="upgrade nightherd, or delete the file: it can be made again",
        )
    return version


def inode_of(path: Path) -> int:
    """Return which file is there; 0 for none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def remove_files(path: Path) -> None:
    """Remove a database and what SQLite keeps beside it."""
    for suffix in SIDE_FILES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """No other process makes, opens for writing, or replaces the file meanwhile."""
    path = root / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise unusable(error, path, "lock") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _opened(path: Path) -> Database:
    database = open_for_writing(path)
    try:
        version_of(database)
    except BaseException:
        database.close()
        raise
    return database


def _make(database: Database) -> None:
    """Make the tables, in one transaction: a file with some of them is never seen."""
    database.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements((SQL / "schema.sql").read_text("utf-8")):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {VERSION}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
