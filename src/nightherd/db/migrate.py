"""Migrations: numbered, additive, recorded with a checksum. The schema is their sum.

Callers hold `write.lock`, so no two processes migrate at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import msgspec

from nightherd.db.connection import Database
from nightherd.db.schema import FILE_NAME, SQL, Queries, refuse_newer, schema_number
from nightherd.errors import SchemaVersionError, StateError


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the schema."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """What is recorded, so that an edited migration is noticed."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def load_migrations(directory: Path | None = None) -> tuple[Migration, ...]:
    """Every migration of this nightherd, first to last; their numbers have no gaps."""
    found = []
    for path in sorted((directory or SQL / "migrations").iterdir()):
        match = FILE_NAME.fullmatch(path.name)
        if match is not None:
            number = int(match["number"])
            found.append(Migration(number=number, name=match["name"], text=path.read_text("utf-8")))
    numbers = [migration.number for migration in found]
    if numbers != list(range(1, len(found) + 1)):
        raise StateError(f"migrations are numbered {numbers}; a number is missing or doubled")
    return tuple(found)


def migrate(
    database: Database, queries: Queries, migrations: Sequence[Migration], at: str
) -> Sequence[Migration]:
    """Bring `database` to the last of `migrations`, each in its own transaction; those that ran.

    A database that holds anything is copied to `<name>.backup-<schema number>` first. A newer database,
    or one whose recorded migrations are not these, is refused and not touched.
    """
    found = schema_number(database, queries)
    refuse_newer(found, len(migrations), database.path)
    if found > 0:
        _check_recorded(database, queries, migrations[:found])
    pending = migrations[found:]
    if pending and found > 0:
        database.back_up(database.path.with_name(f"{database.path.name}.backup-{found}"))
    for migration in pending:
        _apply(database, queries, migration, at)
    return pending


def statements(text: str) -> Iterator[str]:
    """The statements of `text`, one by one; comments before one belong to it."""
    pending: list[str] = []
    for line in text.splitlines(keepends=True):
        pending.append(line)
        joined = "".join(pending)
        if apsw.complete(joined):
            yield joined
            pending.clear()
    if "".join(pending).strip():
        raise StateError("a migration ends in the middle of a statement")


def _apply(database: Database, queries: Queries, migration: Migration, at: str) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements(migration.text):
            database.execute(statement)
        record = (migration.number, migration.name, migration.checksum, at)
        database.execute(queries["migration_record"], record)
        database.execute(f"PRAGMA user_version = {migration.number}")
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _check_recorded(database: Database, queries: Queries, expected: Sequence[Migration]) -> None:
    recorded = database.execute(queries["migrations_recorded"])
    for migration, row in zip(expected, recorded, strict=True):
        if row != (migration.number, migration.name, migration.checksum):
            raise SchemaVersionError(
                f"{database.path}: migration {migration.number} ({migration.name}) differs from the one in this version of nightherd",
                path=str(database.path),
                code="SCHEMA_CHANGED",
                hint="install the nightherd that wrote this directory; the database was not touched",
            )
