"""A database of an older schema, read as if it had been brought forward. The file stays as it is.

Only who writes migrates. Whoever asks before that is answered from a copy in memory that has had the same migrations.
"""

from __future__ import annotations

from nightherd.db.connection import Database
from nightherd.db.queries import SQL
from nightherd.db.schema import FILE_NAME


def brought_forward(database: Database, found: int) -> Database:
    """A copy of `database`, which has had `found` migrations, with the others as well."""
    copy = database.copy_to_memory()
    try:
        for path in sorted((SQL / "migrations").iterdir()):
            name = FILE_NAME.fullmatch(path.name)
            if name is not None and int(name["number"]) > found:
                copy.execute(path.read_text("utf-8"))
    except BaseException:
        copy.close()
        raise
    return copy
