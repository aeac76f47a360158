"""Tables that a migration makes anew keep every row, and what refers to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from db.databases import AT
from nightherd.db.connection import Database, open_for_writing
from nightherd.db.migrate import load_migrations, migrate
from nightherd.db.schema import Queries
from nightherd.errors import StateError
from nightherd.model.notifications.target import NotifyEvent
from nightherd.model.schedules.schedule import SlotOutcome
from nightherd.state.reader import SqliteReader

BEFORE_RUNS = 17
"""The schema that had no runs yet."""
TABLES = ("slots", "deliveries", "notifications", "notification_texts")
ROWS: tuple[tuple[str, dict[str, str | int]], ...] = (
    (
        "jobs",
        {
            "id": "job-2026-03-01-000001",
            "agent": "grazer",
            "trigger_type": "schedule",
            "status": "completed",
            "created_at": AT,
            "number": 1,
        },
    ),
    ("schedules", {"id": "grazer/nightly", "agent": "grazer", "name": "nightly", "status": "idle"}),
    (
        "slots",
        {
            "id": "grazer/nightly@1",
            "schedule_id": "grazer/nightly",
            "due_at": AT,
            "outcome": "job",
            "decided_at": AT,
            "job_id": "job-2026-03-01-000001",
        },
    ),
    (
        "slots",
        {
            "id": "grazer/nightly@2",
            "schedule_id": "grazer/nightly",
            "due_at": AT,
            "outcome": "skipped",
            "decided_at": AT,
            "reason": "busy",
        },
    ),
    (
        "deliveries",
        {
            "id": "issues/1",
            "endpoint": "issues",
            "delivery_id": "1",
            "received_at": AT,
            "outcome": "job",
            "event": "opened",
            "size": 7,
            "sha256": "abc",
            "job_id": "job-2026-03-01-000001",
        },
    ),
    (
        "deliveries",
        {
            "id": "issues/2",
            "endpoint": "issues",
            "delivery_id": "2",
            "received_at": AT,
            "outcome": "ignored",
            "reason": "no match",
        },
    ),
    (
        "notifications",
        {
            "id": "ntf-1",
            "target": "phone",
            "event": "failed",
            "status": "sent",
            "created_at": AT,
            "due_at": AT,
            "give_up_at": AT,
            "dedupe_key": "k",
            "subject": "it failed",
            "job_id": "job-2026-03-01-000001",
            "attempts": 2,
            "number": 4,
        },
    ),
    ("notification_texts", {"notification_id": "ntf-1", "fields": '{"title":"it failed"}'}),
)


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Database]:
    """A database of the schema before runs, with rows in the tables that are made anew."""
    database = open_for_writing(tmp_path / "nightherd.db")
    migrate(database, Queries(), load_migrations()[:BEFORE_RUNS], AT)
    for table, row in ROWS:
        places = ", ".join("?" for _ in row)
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})"
        database.execute(statement, tuple(row.values()))
    try:
        yield database
    finally:
        database.close()


def rows_of(database: Database, table: str) -> list[dict[str, object]]:
    columns = [str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")]
    found = database.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1")
    return [dict(zip(columns, row, strict=True)) for row in found]


def test_rows_are_kept_and_new_columns_are_empty(old: Database) -> None:
    before = {table: rows_of(old, table) for table in TABLES}

    migrate(old, Queries(), load_migrations(), AT)

    added: dict[str, dict[str, object]] = {
        "slots": {"run_id": None},
        "deliveries": {"run_ids": ""},
        "notifications": {"run_id": None},
    }
    for table in TABLES:
        expected = [{**row, **added.get(table, {})} for row in before[table]]
        assert rows_of(old, table) == expected, table
    assert old.execute("PRAGMA foreign_key_check") == []


def test_what_referred_to_a_table_still_does(old: Database) -> None:
    migrate(old, Queries(), load_migrations(), AT)

    for statement in (
        "INSERT INTO notification_texts (notification_id) VALUES ('ntf-none')",
        "INSERT INTO slots (id, schedule_id, due_at, outcome, decided_at, job_id)"
        " VALUES ('x', 'grazer/nightly', '1', 'job', '1', 'job-none')",
        "DELETE FROM notifications",
    ):
        with pytest.raises(StateError):
            old.execute(statement)


def test_indexes_are_those_of_a_new_database(old: Database, tmp_path: Path) -> None:
    migrate(old, Queries(), load_migrations(), AT)
    new = open_for_writing(tmp_path / "new.db")
    try:
        migrate(new, Queries(), load_migrations(), AT)
        asked = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
        assert old.execute(asked) == new.execute(asked)
    finally:
        new.close()


@pytest.mark.parametrize("event", NotifyEvent)
def test_every_event_can_be_told(old: Database, event: NotifyEvent) -> None:
    migrate(old, Queries(), load_migrations(), AT)

    old.execute("UPDATE notifications SET event = ?", (event.value,))


def test_an_old_directory_is_read_before_anybody_has_written(old: Database, tmp_path: Path) -> None:
    reader = SqliteReader(tmp_path)
    try:
        slots = reader.list_slots("grazer/nightly", 5)
        deliveries = reader.list_deliveries("issues", 5)
    finally:
        reader.close()

    assert {(slot.outcome, slot.run_id) for slot in slots} == {
        (SlotOutcome.JOB, None),
        (SlotOutcome.SKIPPED, None),
    }
    assert [one.run_ids for one in deliveries] == ["", ""]
