"""Costs: sums of cells, by any of the keys, for a period. They cost the same whatever journals and blobs there are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec

from nightherd.db.connection import Database, Value
from nightherd.decoding import decode_json
from nightherd.errors import StateFileError
from nightherd.index.cells import AMOUNTS
from nightherd.index.file import FILE, discard_index, inode_of, is_damage, open_index_for_reading
from nightherd.index.search import count_due
from nightherd.model.costs.breakdown import CostGroup, CostKey, CostQuery, CostTable, FamilyUse
from nightherd.model.costs.cell import NO_MODEL, Amounts
from nightherd.model.costs.period import Period
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage

SUMS = ", ".join(f"sum(costs.{name})" for name in AMOUNTS) + ", count(DISTINCT costs.job)"
OF_JOBS = "costs JOIN jobs ON jobs.number = costs.job LEFT JOIN runs ON runs.run_id = jobs.run_id"
OF_DAYS = (
    "(SELECT json_extract(value, '$[0]') AS day, json_extract(value, '$[1]') AS first,"
    " json_extract(value, '$[2]') AS until FROM json_each(?)) AS days"
    f" CROSS JOIN {OF_JOBS}"
)
IN_DAY = "costs.quarter >= days.first AND costs.quarter < days.until"
IN_PERIOD = "costs.quarter >= ? AND costs.quarter < ?"
NO_MODEL_HERE = f"costs.model = '{NO_MODEL}'"
COLUMNS = {
    CostKey.DAY: "days.day",
    CostKey.AGENT: "jobs.agent",
    CostKey.SCHEDULE: "jobs.schedule",
    CostKey.WORKFLOW: "runs.workflow",
    CostKey.MODEL: f"nullif(costs.model, '{NO_MODEL}')",
}
"""What each key is in a row."""
OWNER = f"CASE WHEN {NO_MODEL_HERE} THEN jobs.agent END"
"""The agent whose model is not on record."""
COUNT_JOBS = f"SELECT count(DISTINCT costs.job) FROM costs JOIN jobs ON jobs.number = costs.job WHERE {IN_PERIOD}"
FAMILIES = (
    f"SELECT jobs.agent, jobs.above, jobs.schedule, {SUMS}"
    f" FROM costs JOIN jobs ON jobs.number = costs.job WHERE {IN_PERIOD}"
    " GROUP BY jobs.agent, jobs.above, jobs.schedule"
)
NOTHING_KNOWN = CostTable()
Row = tuple[Value, ...]
AnswerT = TypeVar("AnswerT")


def _ignore_notice(notice: str) -> None:
    """Ignore a notice."""


class IndexCosts:
    """The costs of the jobs of one state directory; from any thread."""

    def __init__(self, root: Path, report: Callable[[str], None] = _ignore_notice) -> None:
        self._root = root
        self._report = report

    def costs(self, query: CostQuery) -> CostTable:
        """Return what was used in a period, in groups; nothing while there is no index.

        A damaged index is removed, so that whoever keeps it makes it again.
        """
        found = self._ask(lambda database: _table(database, query))
        return NOTHING_KNOWN if found is None else found

    def families(self, period: Period) -> list[FamilyUse]:
        """Return what was used in a period, by what limits count it for."""
        values = (period.first, period.until)
        rows = self._ask(lambda database: database.execute(FAMILIES, values))
        return [_family(row) for row in rows or ()]

    def _ask(self, question: Callable[[Database], AnswerT]) -> AnswerT | None:
        inode = inode_of(self._root / FILE)
        try:
            database = open_index_for_reading(self._root)
            if database is None:
                return None
            with closing(database):
                return question(database)
        except StateFileError as error:
            if not is_damage(error):
                raise
            discard_index(self._root, inode)
            self._report(f"{error.message}; it is made again from the journals")
            return None


def _table(database: Database, query: CostQuery) -> CostTable:
    database.execute("BEGIN")  # all of it as of one moment
    only: dict[str, Value] = {"jobs.agent": query.agent, "jobs.job_id": query.job}
    wanted = {column: value for column, value in only.items() if value is not None}
    chosen = "".join(f" AND {column} = ?" for column in wanted)
    names = tuple(wanted.values())
    period: tuple[Value, ...] = (query.period.first, query.period.until)
    jobs = database.execute(COUNT_JOBS + chosen, (*period, *names))[0][0]
    pending = count_due(database)
    columns = [COLUMNS[key] for key in query.by]
    if CostKey.MODEL in query.by:
        columns.append(OWNER)
    source, where, values = OF_JOBS, IN_PERIOD, period
    if CostKey.DAY in query.by:
        days = [(day.name, day.first, day.until) for day in query.days]
        source, where, values = OF_DAYS, IN_DAY, (msgspec.json.encode(days).decode(),)
    grouped = f" GROUP BY {', '.join(columns)}" if columns else ""
    rows = database.execute(
        f"SELECT {', '.join([*columns, SUMS])} FROM {source} WHERE {where}{chosen}{grouped}",
        (*values, *names),
    )
    groups = [_group(row, query) for row in rows if row[-1]]
    return CostTable(groups=groups, jobs=_int(jobs), pending_jobs=pending)


def _group(row: Row, query: CostQuery) -> CostGroup:
    names = {key: _text(value) for key, value in zip(query.by, row, strict=False)}
    owner = _text(row[len(query.by)]) if CostKey.MODEL in query.by else None
    return CostGroup(
        day=names.get(CostKey.DAY),
        agent=names.get(CostKey.AGENT, owner),
        model=names.get(CostKey.MODEL),
        schedule=names.get(CostKey.SCHEDULE),
        workflow=names.get(CostKey.WORKFLOW),
        amounts=_amounts(row),
    )


def _family(row: Row) -> FamilyUse:
    above: list[str] = [] if row[1] is None else decode_json(str(row[1]), list[str])
    return FamilyUse(
        agent=str(row[0]), above=tuple(above), schedule=_text(row[2]), amounts=_amounts(row)
    )


def _amounts(row: Row) -> Amounts:
    """The sums that a row ends with."""
    cost, given, said, written, read, turns, jobs = map(_int, row[-len(AMOUNTS) - 1 :])
    usage = Usage(
        cost_microusd=MicroUsd(cost),
        input_tokens=given,
        output_tokens=said,
        cache_creation_input_tokens=written,
        cache_read_input_tokens=read,
    )
    return Amounts(usage=usage, turns=turns, jobs=jobs)


def _text(value: Value) -> str | None:
    return None if value is None else str(value)


def _int(value: Value) -> int:
    return int(str(value))
