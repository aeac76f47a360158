"""The cells of costs: rows that sums are made of, each of one job, one quarter of an hour and one model."""

from __future__ import annotations

from collections.abc import Iterable

from nightherd.db.connection import Database
from nightherd.model.costs.cell import Cell

AMOUNTS = (
    "cost_microusd",
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "turns",
)
"""The columns that are added up."""
ADD_CELL = (
    f"INSERT INTO costs (quarter, job, model, {', '.join(AMOUNTS)})"
    f" VALUES (?, ?, ?, {', '.join('?' for _ in AMOUNTS)})"
    " ON CONFLICT (quarter, job, model) DO UPDATE SET "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in AMOUNTS)
)


def add_cells(database: Database, job: int, cells: Iterable[Cell]) -> None:
    """Inside a transaction: add what a job used to what is there."""
    for cell in cells:
        usage = cell.usage
        values = (
            cell.quarter,
            job,
            cell.model,
            usage.cost_microusd,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
            cell.turns,
        )
        database.execute(ADD_CELL, values)


def remove_cells(database: Database, job: int) -> None:
    """Inside a transaction: remove everything that a job used."""
    database.execute("DELETE FROM costs WHERE job = ?", (job,))
