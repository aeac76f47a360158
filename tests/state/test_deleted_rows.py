"""`schedule reset` deletes the row of an override: in the database, in the ledger, and when the ledger is replayed."""

from __future__ import annotations

import json

import anyio
from msgspec.structs import replace

from nightherd.db.connection import open_for_reading, open_for_writing
from nightherd.db.ledger import read_ledger
from nightherd.model.change import Change
from nightherd.model.schedules.schedule import OverrideSchedule
from nightherd.ports import StateReader
from nightherd.state.agreement import differences
from nightherd.state.directory import StateDirectory
from nightherd.state.outbox import LedgerFeed
from nightherd.state.reader import SqliteReader
from nightherd.state.row_images import last_image
from nightherd.testing.determinism import START
from nightherd.testing.state_values import AGENT, BEGINNING, NIGHTLY
from state.stores import open_store

TABLE = "schedule_overrides"
SET = OverrideSchedule(agent=AGENT, schedule="nightly", at=BEGINNING, by="someone", rule="5m")
RESET = replace(SET, rule=None, reset=True)
OFF = replace(SET, rule=None, enabled=False)


def apply(directory: StateDirectory, *changes: Change) -> None:
    """Each by itself, through one open store."""

    async def go() -> None:
        async with open_store(directory) as store:
            for change in changes:
                await store.apply([change])

    anyio.run(go)


def overrides(directory: StateDirectory) -> list[tuple[object, ...]]:
    database = open_for_reading(directory.database)
    assert database is not None
    try:
        return list(database.execute(f"SELECT id, enabled, schedule FROM {TABLE}"))
    finally:
        database.close()


def test_reset_deletes_the_row_and_the_ledger_says_so(directory: StateDirectory) -> None:
    apply(directory, SET, RESET)

    assert overrides(directory) == []
    (image,) = [one for one in list(read_ledger(directory.ledger))[-1].rows if one.table == TABLE]
    assert image.deleted
    # An older nightherd knows no `deleted`: it keeps a row that says nothing, as it did itself.
    assert (image.row["id"], image.row["enabled"], image.row["schedule"]) == (NIGHTLY, None, None)


def test_replayed_ledger_has_no_deleted_row(directory: StateDirectory) -> None:
    apply(directory, SET, RESET)
    assert differences(directory.root, at=START) == []

    apply(directory, OFF)
    assert differences(directory.root, at=START) == []


def test_override_that_is_set_again_begins_anew(directory: StateDirectory) -> None:
    apply(directory, SET, RESET, OFF)

    assert overrides(directory) == [(NIGHTLY, 0, None)]


def test_reset_without_an_override_deletes_nothing(directory: StateDirectory) -> None:
    apply(directory, RESET, RESET)

    images = [one for line in read_ledger(directory.ledger) for one in line.rows]
    assert [one for one in images if one.table == TABLE] == []


def test_deleted_row_has_no_second_copy(directory: StateDirectory) -> None:
    apply(directory, SET, RESET)

    database = open_for_reading(directory.database)
    assert database is not None
    try:
        assert last_image(database, TABLE, "id", NIGHTLY) is None
    finally:
        database.close()


def test_followers_are_told_which_rows_were_deleted(directory: StateDirectory) -> None:
    apply(directory, SET, RESET)

    first, last = LedgerFeed(directory.ledger).read()

    assert TABLE in [table for table, _ in first.rows]
    assert TABLE not in [table for table, _ in last.rows]
    ((table, row),) = last.deleted
    assert (table, json.loads(bytes(row))["id"]) == (TABLE, NIGHTLY)


def test_row_of_nulls_of_an_older_version_is_no_override(directory: StateDirectory) -> None:
    apply(directory, OFF)
    database = open_for_writing(directory.database)
    try:
        database.execute(f"UPDATE {TABLE} SET enabled = NULL")
    finally:
        database.close()

    reader: StateReader = SqliteReader(directory.root)
    assert list(reader.list_overrides()) == []

    apply(directory, RESET)
    assert overrides(directory) == []
