"""The outbox: changes that are committed and on their way into the ledger."""

from __future__ import annotations

from nightherd.db.connection import Database
from nightherd.db.ledger import Entry
from nightherd.db.queries import Queries

RESTORED = "Restored"
"""The kind of an entry that only keeps the number: the ledger has its rows already."""


def waiting_after(database: Database, change: int) -> list[Entry]:
    """The changes after `change` that the outbox has with their rows."""
    found = database.execute(Queries()["outbox_after"], (change,))
    entries = [
        Entry(change=int(str(number)), at=str(at), kind=str(kind), rows=str(rows))
        for number, at, kind, rows in found
    ]
    return [entry for entry in entries if entry.kind != RESTORED]


def outbox_span(database: Database) -> tuple[int, int]:
    """The first and the last change it holds; 0 and 0 when it holds none."""
    ((first, last),) = database.execute(Queries()["outbox_span"])
    return int(str(first)), int(str(last))


def is_sound(database: Database) -> bool:
    """Whether a quick look over every page finds the database whole."""
    return database.execute("PRAGMA quick_check(1)") == [("ok",)]
