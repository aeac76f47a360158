"""Which schema a database has, and which this nightherd knows: cheap enough for every command."""

from __future__ import annotations

import re
from pathlib import Path

from nightherd.db.connection import Database
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


SQL = Path(__file__).with_name("sql") / "sqlite"


class Queries:
    """The text of every query, read when first asked for and kept as long as this object."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = (SQL / "queries" / f"{name}.sql").read_text("utf-8")
        return text


def query_names() -> list[str]:
    """Every query there is."""
    return sorted(path.stem for path in (SQL / "queries").glob("*.sql"))


def brought_forward(database: Database, queries: Queries) -> Database:
    """Return a copy of `database` with the migrations that it has not had yet.

    They are counted in the copy: another process may migrate the file at any moment.
    """
    copy = database.copy_to_memory()
    try:
        found = schema_number(copy, queries)
        for path in sorted((SQL / "migrations").iterdir()):
            name = FILE_NAME.fullmatch(path.name)
            if name is not None and int(name["number"]) > found:
                copy.execute(path.read_text("utf-8"))
    except BaseException:
        copy.close()
        raise
    return copy
