"""Adopting what people switched at another tool: schedules and workflows, where there are some of that name here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nightherd.engine.imports.context import ImportContext, Report
from nightherd.engine.imports.foreign_runs import ForeignSwitch, ForeignWorkflows
from nightherd.engine.imports.jobs import adopt_rows
from nightherd.model.schedules.schedule import ScheduleOverride
from nightherd.model.workflows.rows import WorkflowOverride


async def import_switches(found: ForeignWorkflows, context: ImportContext, report: Report) -> None:
    """Take over overrides of schedules and workflows that are here; the others are put on the report."""
    rows: list[ScheduleOverride | WorkflowOverride] = []
    overrides = {one.id for one in context.reader.list_overrides()}
    planned = {state.id for state in context.reader.list_schedules()}
    rows += _schedules(found.schedules, sorted(planned.union(context.schedules)), overrides, report)
    switched = {one.name for one in context.reader.list_workflow_overrides()}
    rows += _workflows(found.workflows, context.workflows, switched, report)
    if rows and context.writers is not None:
        await adopt_rows(rows, found.tool, context.writers)
    if rows:
        report.count("overrides", len(rows))


def _schedules(
    found: Iterable[ForeignSwitch], known: Sequence[str], overridden: set[str], report: Report
) -> Iterator[ScheduleOverride]:
    for switch in found:
        ids = [id for id in known if id.rpartition("/")[2] == switch.name]
        if not ids:
            report.skip(switch.source, f"there is no schedule {switch.name!r} here")
        elif len(ids) > 1:
            report.skip(
                switch.source, f"there are several schedules of that name: {', '.join(ids)}"
            )
        elif switch.enabled and switch.schedule is None:
            report.skip(switch.source, "it changes nothing: the schedule is enabled as it is")
        elif ids[0] in overridden:
            report.unchanged += 1
        else:
            yield ScheduleOverride(
                id=ids[0],
                updated_at=switch.updated_at,
                # Nothing is switched on by an import: the file says whether it is.
                enabled=None if switch.enabled else False,
                schedule=switch.schedule,
                updated_by=switch.updated_by,
            )


def _workflows(
    found: Iterable[ForeignSwitch], known: Iterable[str], switched: set[str], report: Report
) -> Iterator[WorkflowOverride]:
    names = frozenset(known)
    for switch in found:
        if switch.name not in names:
            report.skip(switch.source, f"there is no workflow {switch.name!r} here")
        elif switch.name in switched:
            report.unchanged += 1
        else:
            yield WorkflowOverride(
                name=switch.name,
                enabled=switch.enabled,
                updated_at=switch.updated_at,
                updated_by=switch.updated_by,
            )
