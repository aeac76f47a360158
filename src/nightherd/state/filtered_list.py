"""Statements of filtered lists: newest first, after a cursor, through an index that finds rows in that order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import product
from typing import NamedTuple

from nightherd.db.connection import Value
from nightherd.model.jobs.filter import whole_prefix
from nightherd.model.jobs.job import JobFilter
from nightherd.model.text import utc_text

MOST_STATEMENTS = 12
"""Lists of several values are merged from one statement for each; of more, they are looked at in order of time."""
SESSION, RUN = "sess-", "run-"
SESSION_LENGTH, RUN_LENGTH = len("sess-00000000"), len("run-2026-01-01-000000")
WORD_COLUMNS = ("id", "agent", "schedule", "summary", "error")


class Listing(NamedTuple):
    """A table that is listed: what is read of it, and the column of its order in time."""

    table: str
    columns: str
    time: str


JOBS = Listing("jobs", "*", "created_at")


class Select:
    """One statement in the making; its values are bound, never part of its text."""

    def __init__(self, listing: Listing, before: int) -> None:
        table, time = listing.table, listing.time
        self._listing = listing
        self._values: list[Value] = [before]
        self._conditions = [
            f"({time}, number) < (coalesce((SELECT {time} FROM {table} WHERE number = ?1), '~'), ?1)"
        ]

    def require(self, condition: str) -> None:
        """Add a condition without values: the one that makes a partial index usable."""
        self._conditions.append(condition)

    def compare(self, column: str, sign: str, value: Value) -> None:
        """The column has to compare so."""
        self._conditions.append(f"{column} {sign} {self._bind(value)}")

    def one_of(self, column: str, values: Sequence[str]) -> None:
        """The column has one of the values; any when there are none."""
        if values:
            self._conditions.append(f"{column} IN ({', '.join(map(self._bind, values))})")

    def begins(self, column: str, prefixes: Sequence[str]) -> None:
        """The column begins with one of the prefixes; anyhow when there are none."""
        # Ids are ASCII, so everything with the prefix stands before the prefix and one beyond ASCII.
        parts = [
            f"({column} >= {self._bind(one)} AND {column} < {self._bind(one + chr(127))})"
            for one in prefixes
        ]
        self._any(parts)

    def schedules(self, owner: str, names: Sequence[str]) -> None:
        """The schedule has one of the names, each alone or after its owner and a slash."""
        parts = []
        for name in names:
            of, slash, short = name.rpartition("/")
            part = f"schedule = {self._bind(short)}"
            parts.append(f"({part} AND {owner} = {self._bind(of)})" if slash else part)
        self._any(parts)

    def between(self, since: datetime | None, until: datetime | None) -> None:
        """The row is of this time; the end is not part of it."""
        if since is not None:
            self.compare(self._listing.time, ">=", utc_text(since))
        if until is not None:
            self.compare(self._listing.time, "<", utc_text(until))

    def words(self, words: Sequence[str], columns: Sequence[str]) -> None:
        """Each word is in one of the columns."""
        for word in words:
            escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            pattern = self._bind(f"%{escaped}%")
            self._any([rf"{column} LIKE {pattern} ESCAPE '\'" for column in columns])

    def statement(self, index: str, limit: int) -> tuple[str, tuple[Value, ...]]:
        """Return the statement and its values."""
        listing = self._listing
        limited = self._bind(limit)
        text = (
            f"SELECT {listing.columns} FROM {listing.table} INDEXED BY {index}"
            f" WHERE {' AND '.join(self._conditions)}"
            f" ORDER BY {listing.time} DESC, number DESC LIMIT {limited}"
        )
        return text, tuple(self._values)

    def _any(self, parts: Sequence[str]) -> None:
        if parts:
            self._conditions.append(f"({' OR '.join(parts)})")

    def _bind(self, value: Value) -> str:
        self._values.append(value)
        return f"?{len(self._values)}"


class Drive(NamedTuple):
    """The index that a list is read through, and values of its first columns: a statement for each."""

    through: str
    columns: tuple[str, ...] = ()
    values: Sequence[tuple[str, ...]] = ((),)
    condition: str = ""
    """The condition of a partial index, where nothing else implies it."""


def job_statements(
    filter: JobFilter, before: int, limit: int
) -> list[tuple[str, tuple[Value, ...]]]:
    """Return the statements that together find the newest `limit` jobs of the filter, each of them in order."""
    drive = _drive(filter)
    found = []
    for values in drive.values:
        select = Select(JOBS, before)
        for column, value in zip(drive.columns, values, strict=True):
            select.compare(column, "=", value)
        if drive.condition:
            select.require(drive.condition)
        if "agent" not in drive.columns:
            select.one_of("agent", filter.agents)
        if "status" not in drive.columns:
            select.one_of("status", filter.statuses)
        if "trigger_type" not in drive.columns:
            select.one_of("trigger_type", filter.triggers)
        select.schedules("agent", filter.schedules)
        select.begins("session_id", [whole_prefix(one, SESSION) for one in filter.sessions])
        select.begins("workflow_run_id", [whole_prefix(one, RUN) for one in filter.runs])
        if filter.least_cost is not None:
            select.compare("cost_microusd", ">=", filter.least_cost)
        if filter.most_cost is not None:
            select.compare("cost_microusd", "<=", filter.most_cost)
        select.between(filter.since, filter.until)
        select.words(filter.words, WORD_COLUMNS)
        found.append(select.statement(drive.through, limit))
    return found


def _drive(filter: JobFilter) -> Drive:
    """Return the index that leaves the least to look at, as far as the filter alone says."""
    for column, index, prefixes, length in (
        ("session_id", "jobs_by_session", filter.sessions, SESSION_LENGTH),
        ("workflow_run_id", "jobs_of_workflow_run", filter.runs, RUN_LENGTH),
    ):
        word = SESSION if column == "session_id" else RUN
        ids = [whole_prefix(one, word) for one in prefixes]
        if ids and len(ids) <= MOST_STATEMENTS and all(len(id) == length for id in ids):
            return Drive(index, (column,), [(id,) for id in ids])
        if ids:  # the beginnings of ids: all of them are looked at, and there are few
            return Drive(index, condition=f"{column} IS NOT NULL")
    schedules = {name.rpartition("/")[2] for name in filter.schedules}
    agents, statuses = filter.agents, [status.value for status in filter.statuses]
    triggers = [trigger.value for trigger in filter.triggers]
    choices = (
        ("jobs_by_schedule", ("schedule",), [schedules]),
        ("jobs_by_agent_and_status", ("agent", "status"), [agents, statuses]),
        ("jobs_by_agent", ("agent",), [agents]),
        ("jobs_by_status", ("status",), [statuses]),
        ("jobs_by_trigger", ("trigger_type",), [triggers]),
    )
    for index, columns, lists in choices:
        values = list(product(*lists))
        if 0 < len(values) <= MOST_STATEMENTS:
            return Drive(index, columns, values)
    if filter.least_cost:
        return Drive("jobs_by_cost", condition="cost_microusd > 0")
    return Drive("jobs_by_time")
