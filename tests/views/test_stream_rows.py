"""Which rows of lists a change touches: always the same, in a fixed order, whatever else the change wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from nightherd.ports import LedgerEntry
from nightherd.views.streams.rows import touched_rows

NOW = datetime(2026, 11, 18, tzinfo=UTC)


def raw(row: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(row))


def entry(*rows: tuple[str, dict[str, Any]], deleted: Any = ()) -> LedgerEntry:
    return LedgerEntry(
        change=1,
        at=NOW,
        kind="X",
        rows=[(table, raw(row)) for table, row in rows],
        deleted=[(table, raw(row)) for table, row in deleted],
    )


def test_every_table_that_a_list_shows_names_its_rows() -> None:
    job = {"id": "j", "agent": "a", "schedule": "s", "workflow_run_id": "r"}
    found = list(
        touched_rows(
            entry(
                ("jobs", job),
                ("sessions", {"id": "x", "agent": "a"}),
                ("agents", {"name": "a"}),
                ("schedules", {"id": "a/s", "agent": "a", "name": "s"}),
                ("slots", {"id": "a/s@1", "schedule_id": "a/s"}),
                ("inbox_items", {"id": "i", "workflow_run_id": None}),
                ("inbox_answers", {"id": "i.1", "item_id": "i"}),
                ("workflow_runs", {"id": "r"}),
                ("workflow_nodes", {"id": "r/p", "run_id": "r"}),
                ("executions", {"id": "j.1"}),
                deleted=[("schedule_overrides", {"id": "a/t"})],
            )
        )
    )

    assert [(row.kind, row.id, row.run_id) for row in found] == [
        ("job", "j", "r"),
        ("schedule", "a/s", "r"),
        ("agent", "a", "r"),
        ("session", "x", None),
        ("agent", "a", None),
        ("schedule", "a/s", None),
        ("agent", "a", None),
        ("schedule", "a/s", None),
        ("inbox", "i", None),
        ("inbox", "i", None),
        ("run", "r", "r"),
        ("run", "r", "r"),
        ("node", "r/p", "r"),
        ("schedule", "a/t", None),
        ("agent", "a", None),
    ]


def test_rows_are_numbered_upwards_also_where_others_are_between_them() -> None:
    change = entry(
        ("executions", {"id": "j.1"}),
        ("jobs", {"id": "j", "agent": "a", "schedule": "s"}),
        ("workers", {"id": "w"}),
        ("workflow_nodes", {"id": "r/p", "run_id": "r"}),
    )

    numbers = [row.index for row in touched_rows(change)]

    assert numbers == sorted(set(numbers))
    assert numbers == [row.index for row in touched_rows(change)]


def test_a_row_image_that_cannot_be_read_is_left_out() -> None:
    change = entry(("jobs", {"id": 3}), ("sessions", {"id": "x"}))

    assert [row.kind for row in touched_rows(change)] == ["session"]
