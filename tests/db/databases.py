"""Databases to test with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nightherd.db.connection import Database, open_for_writing
from nightherd.db.migrate import load_migrations, migrate
from nightherd.db.schema import Queries

AT = "2026-03-01T12:00:00.000000Z"


@contextmanager
def migrated(path: Path) -> Iterator[Database]:
    """A database with this nightherd's schema and no rows."""
    database = open_for_writing(path)
    try:
        migrate(database, Queries(), load_migrations(), AT)
        yield database
    finally:
        database.close()
