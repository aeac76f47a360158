"""Which schema a database has, and which this nightherd knows: cheap enough for every command."""

from __future__ import annotations

import re
from pathlib import Path

from nightherd.db.connection import Database
from nightherd.db.queries import SQL, Queries
from nightherd.errors import SchemaVersionError

FILE_NAME = re.compile(r"(?P<number>\d{4})_(?P<name>\w+)\.sql")


def known_schema() -> int:
    """The number of the last migration this nightherd has."""
    names = (FILE_NAME.fullmatch(path.name) for path in (SQL / "migrations").iterdir())
    return max(int(name["number"]) for name in names if name is not None)


def schema_number(database: Database, queries: Queries) -> int:
    """How many migrations the database has had."""
    return int(str(database.execute(queries["schema_number"])[0][0]))


def refuse_newer(found: int, known: int, path: Path) -> None:
    """Raise `SchemaVersionError` when a database has had migrations this nightherd does not know."""
    if found > known:
        raise SchemaVersionError(
            f"{path} was written by a newer nightherd: schema {found}, this one knows {known}",
            path=str(path),
            code="SCHEMA_TOO_NEW",
            hint="upgrade nightherd; the database was not touched",
        )
