"""Statements of filtered lists of runs, as those of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from nightherd.db.connection import Value
from nightherd.model.workflows.rows import RunFilter
from nightherd.state.filtered_list import MOST_STATEMENTS, Drive, Listing, Select

WORD_COLUMNS = ("id", "workflow_name", "schedule", "current_phase", "error")


def run_statements(
    filter: RunFilter, columns: Sequence[str], before: int, limit: int
) -> list[tuple[str, tuple[Value, ...]]]:
    """Return the statements that together find the newest `limit` runs of the filter, each of them in order."""
    listing = Listing("workflow_runs", ", ".join(columns), "started_at")
    drive = _drive(filter)
    found = []
    for values in drive.values:
        select = Select(listing, before)
        for column, value in zip(drive.columns, values, strict=True):
            select.compare(column, "=", value)
        if "workflow_name" not in drive.columns:
            select.one_of("workflow_name", filter.workflows)
        if "status" not in drive.columns:
            select.one_of("status", filter.statuses)
        select.one_of("trigger_type", filter.triggers)
        select.schedules("workflow_name", filter.schedules)
        if filter.least_cost is not None:
            select.compare("cost_microusd", ">=", filter.least_cost)
        if filter.most_cost is not None:
            select.compare("cost_microusd", "<=", filter.most_cost)
        select.between(filter.since, filter.until)
        select.words(filter.words, WORD_COLUMNS)
        found.append(select.statement(drive.through, limit))
    return found


def _drive(filter: RunFilter) -> Drive:
    workflows, statuses = filter.workflows, [status.value for status in filter.statuses]
    choices = (
        ("workflow_runs_name_status", ("workflow_name", "status"), [workflows, statuses]),
        ("idx_workflow_runs_name_started", ("workflow_name",), [workflows]),
        ("idx_workflow_runs_status", ("status",), [statuses]),
    )
    for index, columns, lists in choices:
        values = list(product(*lists))
        if 0 < len(values) <= MOST_STATEMENTS:
            return Drive(index, columns, values)
    return Drive("idx_workflow_runs_started_at")
