"""Rows kept in memory between transactions: a job's rows are asked for again with each of its changes.

What is kept is what the database has. Only the writer's connection keeps rows, everything it writes goes
through here, and SQLite says at the beginning of each transaction whether anybody else has written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from nightherd.db.connection import Database
from nightherd.model.chat.message import ChatMessageTexts
from nightherd.model.chat.post import PostTexts
from nightherd.model.jobs.job import JobTexts
from nightherd.model.notifications.notification import NotificationTexts
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.rows import (
    RunNodes,
    WorkflowContext,
    WorkflowNode,
    WorkflowNodeTexts,
)
from nightherd.state.table import Image, Table

RowT = TypeVar("RowT", bound=msgspec.Struct)

RUNS = 64
"""Runs whose nodes are kept before all of them are dropped."""
LIMIT = 4_096
"""Rows kept before all of them are dropped: far more than what runs at once needs."""

UNBOUNDED = frozenset(
    {
        NotificationTexts,
        JobTexts,
        WorkflowContext,
        WorkflowNodeTexts,
        ChatMessageTexts,
        PostTexts,
    }
)
"""Kinds whose rows may be large: none of them is kept for longer than from its reading to its writing."""


class _Kept(msgspec.Struct):
    row: Any
    image: Image | None = None


class KeptRows:
    """The rows of one connection that writes, as far as they are remembered."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._version = 0
        self._rows: dict[tuple[type, str], _Kept] = {}
        self._large: dict[tuple[type, str], _Kept] = {}
        self._numbers: dict[type, int] = {}
        self._runs: dict[str, RunNodes] = {}

    def begin(self) -> None:
        """Inside a transaction that has just begun: forget what another process may have changed."""
        version = self._database.data_version()
        if version != self._version:
            self._rows.clear()
            self._runs.clear()
            self._numbers.clear()
        self._version = version
        self._large.clear()

    def forget(self) -> None:
        """Forget everything: something that was written has been undone."""
        self._rows.clear()
        self._runs.clear()
        self._large.clear()
        self._numbers.clear()

    def last_number(self, kind: type, find: Callable[[], int]) -> int:
        """The highest number that a row of `kind` has; `find` looks it up when it is not remembered."""
        last = self._numbers.get(kind)
        if last is None:
            last = self._numbers[kind] = find()
        return last

    def run_nodes(self, run_id: str) -> RunNodes | None:
        """The nodes of a run, if they are remembered."""
        return self._runs.get(run_id)

    def put_run(self, run_id: str, nodes: RunNodes) -> None:
        """Remember the nodes of a run as they were read; writing one keeps them so."""
        if len(self._runs) >= RUNS:
            self._runs.clear()
        self._runs[run_id] = nodes

    def _remember_node(self, row: WorkflowNode) -> None:
        known = self._runs.get(row.run_id)
        if known is None:
            return
        before = known.nodes.get(row.key)
        if before is None and row.kind is NodeKind.GROUP:
            del self._runs[row.run_id]  # its items are read with it
        else:
            known.put(row, None if before is None else before.items)

    def get(self, kind: type[RowT], key: str) -> RowT | None:
        """The row, if it is remembered."""
        kept = self._shelf(kind).get((kind, key))
        return kept.row if kept is not None else None

    def put(self, kind: type[RowT], key: str, row: RowT) -> None:
        """Remember a row as it was read."""
        if len(self._rows) >= LIMIT:
            self._rows.clear()
        self._shelf(kind)[kind, key] = _Kept(row)

    def draft(self, table: Table[RowT], row: RowT) -> Draft:
        """How `row` is written: whole, or only what is new about it when the row before is remembered."""
        key = str(getattr(row, table.key))
        kept = self._shelf(table.row_type).get((table.row_type, key))
        if kept is None:
            return Draft(table, key, row, table.image(row), None)
        before = kept.image if kept.image is not None else table.image(kept.row)
        image, changed = table.image_after(kept.row, before, row)
        return Draft(table, key, row, image, changed)

    def write(self, draft: Draft) -> None:
        """Write a draft, and remember its row if it is a small one."""
        table, image = draft.table, draft.image
        if draft.changed is None:
            self._database.execute(table.upsert, tuple(image.values()))
        elif draft.changed:
            values = [image[name] for name in draft.changed]
            self._database.execute(table.update(draft.changed), (*values, draft.key))
        if table.row_type is WorkflowNode:
            self._remember_node(draft.row)
        if table.row_type in self._numbers:
            number = max(self._numbers[table.row_type], draft.row.number)
            self._numbers[table.row_type] = number
        if table.row_type in UNBOUNDED:
            self._large.pop((table.row_type, draft.key), None)
            return
        if len(self._rows) >= LIMIT:
            self._rows.clear()
        self._rows[table.row_type, draft.key] = _Kept(draft.row, image)

    def delete(self, table: Table[RowT], row: RowT) -> None:
        """Delete the row with the key of `row`, if it is there."""
        key = str(getattr(row, table.key))
        self._database.execute(f"DELETE FROM {table.name} WHERE {table.key} = ?", (key,))
        self._shelf(table.row_type).pop((table.row_type, key), None)

    def _shelf(self, kind: type) -> dict[tuple[type, str], _Kept]:
        return self._large if kind in UNBOUNDED else self._rows


class Draft(msgspec.Struct, frozen=True):
    """One row about to be written."""

    table: Table[Any]
    key: str
    row: Any
    image: Image
    changed: tuple[str, ...] | None
    """The columns to write; None for all of them, whether the row is there or not."""
