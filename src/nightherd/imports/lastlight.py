"""Last Light's state directory: `lastlight.db`, and the event logs below `agent-sessions/projects`.

The database may be of the older or the newer schema. It and the logs are only read. Every row is read by itself: one
that cannot be imported is reported and kept aside, and costs no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nightherd.engine.imports.context import Report
from nightherd.engine.imports.foreign_runs import ForeignSwitch, ForeignWorkflows
from nightherd.errors import InvalidValueError
from nightherd.imports.lastlight_database import (
    CRONS,
    EXECUTIONS,
    RUNS,
    SCHEMA,
    WORKFLOWS,
    Tables,
    locate,
    opened_tables,
)
from nightherd.imports.lastlight_events import PROJECTS, find_logs, session_logs
from nightherd.imports.lastlight_executions import ExecutionIndex, Executions
from nightherd.imports.lastlight_rows import Columns, Damage
from nightherd.imports.lastlight_runs import Runs
from nightherd.imports.lines import shown
from nightherd.model.schedules.due import parse_rule
from nightherd.model.schedules.rule import UTC_NAME
from nightherd.model.text import counted

TOOL = "lastlight"
OWN = frozenset({"__drizzle_migrations"})
"""Tables about the database itself."""
LEFT_OUT = {
    "messaging_sessions": "conversations with people cannot be imported yet",
    "messaging_messages": "conversations with people cannot be imported yet",
}
NO_PLACE = "there is no place for them here"


@contextmanager
def opened_workflows(given: Path, report: Report) -> Iterator[ForeignWorkflows]:
    """Open what Last Light left in `given`, its database or its state directory; it is read inside the block.

    `NotFoundError` when there is nothing, `RefusedError` for a database of something else.
    """
    path = locate(given)
    damage = Damage(path, report)
    with opened_tables(path, damage) as tables:
        _report_left_out(tables, damage)
        files = list(find_logs(path.parent, report).values())
        if not files and tables.count(EXECUTIONS):
            report.skip(shown(path.parent / PROJECTS), "there are no event logs")
        index = ExecutionIndex(tables)
        logs = session_logs(files, report)
        for session, file in logs.items():
            if session not in index.sessions:
                report.skip(file.source, "no execution names it; only a copy of it is kept")
        runs = Runs(tables, index, damage)
        executions = Executions(tables, index, logs, damage, runs.starts, runs.nodes)
        yield ForeignWorkflows(
            tool=TOOL,
            run_starts=runs.starts,
            files=files,
            sessions=executions.sessions(),
            runs=runs.runs(),
            schedules=_switches(tables, CRONS, damage),
            workflows=_switches(tables, WORKFLOWS, damage),
            asides=damage.asides,
            total=len(index.order) + tables.count(RUNS),
        )


def _report_left_out(tables: Tables, damage: Damage) -> None:
    """Name every table that is not imported and has rows."""
    for table in tables.names():
        if table in SCHEMA or table in OWN:
            continue
        count = tables.count(table)
        if count:
            reason = f"{counted(count, 'row')} left out: {LEFT_OUT.get(table, NO_PLACE)}"
            damage.report.skip(f"{damage.file}: {table}", reason)


def _switches(tables: Tables, table: str, damage: Damage) -> Iterator[ForeignSwitch]:
    for row in tables.rows(table, ("name",)):
        columns = Columns(row)
        try:
            enabled, schedule = columns.find_flag("enabled"), columns.find_text("schedule")
            if schedule:
                parse_rule(schedule, UTC_NAME)
            yield ForeignSwitch(
                name=columns.text("name"),
                source=f"{damage.file}: {row.record}",
                enabled=enabled is not False,
                schedule=schedule or None,
                updated_at=columns.at("updated_at"),
                updated_by=columns.find_text("updated_by"),
            )
        except InvalidValueError as error:
            damage.row(row, ValueError(f"schedule: {error.message}"))
        except ValueError as error:
            damage.row(row, error)
