"""The texts that can be found: a row for each, and the words of all of them in a full-text index.

A row's number is its time: milliseconds, and a place among those of the same millisecond. So the index itself has
the newest first, and a page costs the same however much there is. The texts themselves are not kept: the
journals have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from nightherd.db.connection import Database
from nightherd.model.index.search import NAME_LIMIT, EventText, NamedSession
from nightherd.model.index.search_terms import agent_token
from nightherd.model.text import shorten, whole_text

PLACES = 11
"""Bits of a number that are the place in its millisecond. Numbers stay below 2**53 until the year 2109."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

ADD_TEXT = (
    "INSERT INTO texts (id, job, seq, kind, message) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO NOTHING RETURNING id"
)
ADD_NAME = (
    "INSERT INTO texts (id, session_id, kind, agent, body) VALUES (?, ?, 'session', ?, ?)"
    " ON CONFLICT (id) DO NOTHING RETURNING id"
)
ADD_WORDS = "INSERT INTO search (rowid, body, agent) VALUES (?, ?, ?)"
NEXT_FREE = (
    "SELECT id + 1 FROM texts AS taken WHERE id >= ?"
    " AND NOT EXISTS (SELECT 1 FROM texts WHERE id = taken.id + 1) ORDER BY id LIMIT 1"
)


def first_number(at: datetime) -> int:
    """The lowest number that a text of this instant can have."""
    return max(1, (at - EPOCH) // MILLISECOND << PLACES)


def time_of(number: int) -> datetime:
    """When the text with this number was recorded, to the millisecond."""
    return EPOCH + (number >> PLACES) * MILLISECOND


def add_texts(
    database: Database, job: int, agent: str, texts: Sequence[EventText], last: int = 0
) -> None:
    """Inside a transaction: add texts of a job, each after the one before."""
    token = agent_token(agent)
    for text in texts:
        last = max(first_number(text.at), last + 1)
        while not database.execute(ADD_TEXT, (last, job, text.seq, text.kind, text.message)):
            last = _next_free(database, last)
        database.execute(ADD_WORDS, (last, text.body, token))


def remove_texts(database: Database, job: int) -> None:
    """Inside a transaction: remove every text of a job."""
    database.execute(
        "DELETE FROM search WHERE rowid IN (SELECT id FROM texts WHERE job = ?)", (job,)
    )
    database.execute("DELETE FROM texts WHERE job = ?", (job,))


def name_session(database: Database, session: NamedSession) -> None:
    """Inside a transaction: let a session be found by its name, or not any more."""
    mine = "SELECT id FROM texts WHERE session_id = ? AND job IS NULL"
    database.execute(f"DELETE FROM search WHERE rowid IN ({mine})", (session.id,))
    database.execute("DELETE FROM texts WHERE session_id = ? AND job IS NULL", (session.id,))
    if not session.name or session.at is None:
        return
    name = whole_text(shorten(session.name, NAME_LIMIT))
    number = first_number(session.at)
    while not database.execute(ADD_NAME, (number, session.id, session.agent, name)):
        number = _next_free(database, number)
    database.execute(ADD_WORDS, (number, name, agent_token(session.agent)))


def _next_free(database: Database, number: int) -> int:
    return int(str(database.execute(NEXT_FREE, (number,))[0][0]))
