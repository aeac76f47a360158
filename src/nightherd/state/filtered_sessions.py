"""Statements of filtered lists of sessions, as those of jobs. Sessions that were cleaned up are in none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from nightherd.db.connection import Value
from nightherd.model.sessions.session import SessionFilter
from nightherd.state.filtered_list import MOST_STATEMENTS, Drive, Listing, Select

SESSIONS = Listing("sessions", "*", "created_at")
WORD_COLUMNS = ("id", "agent", "name", "channel_id", "schedule")
KEPT = "removed_at IS NULL"


def session_statements(
    filter: SessionFilter, before: int, limit: int
) -> list[tuple[str, tuple[Value, ...]]]:
    """Return the statements that together find the newest `limit` sessions of the filter, each of them in order."""
    drive = _drive(filter)
    found = []
    for values in drive.values:
        select = Select(SESSIONS, before)
        select.require(KEPT)
        for column, value in zip(drive.columns, values, strict=True):
            select.compare(column, "=", value)
        for column, wanted in (
            ("agent", filter.agents),
            ("status", filter.statuses),
            ("mode", filter.modes),
        ):
            if column not in drive.columns:
                select.one_of(column, wanted)
        select.one_of("channel_id", filter.channels)
        select.schedules("agent", filter.schedules)
        if filter.least_cost is not None:
            select.compare("cost_microusd", ">=", filter.least_cost)
        if filter.most_cost is not None:
            select.compare("cost_microusd", "<=", filter.most_cost)
        select.between(filter.since, filter.until)
        select.words(filter.words, WORD_COLUMNS)
        found.append(select.statement(drive.through, limit))
    return found


def _drive(filter: SessionFilter) -> Drive:
    """Return the index that leaves the least to look at, as far as the filter alone says."""
    choices: tuple[tuple[str, str, Sequence[str]], ...] = (
        ("sessions_by_agent", "agent", filter.agents),
        ("sessions_by_status", "status", filter.statuses),
        ("sessions_by_mode", "mode", filter.modes),
    )
    for index, column, wanted in choices:
        if 0 < len(wanted) <= MOST_STATEMENTS:
            return Drive(index, (column,), list(product(wanted)))
    return Drive("sessions_kept")
