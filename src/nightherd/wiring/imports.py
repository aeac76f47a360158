"""Import the workflows of other tools."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nightherd.model.schedules.schedule import schedule_id
from nightherd.wiring.repair import open_import

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from nightherd.engine.imports.context import ImportContext, Report
    from nightherd.engine.imports.foreign_runs import ForeignWorkflows
    from nightherd.model.agents.agent import Fleet


def open_lastlight(path: Path, report: Report) -> AbstractContextManager[ForeignWorkflows]:
    """Open the records of Last Light in `path`, which are read inside the block; `NotFoundError` when there are none."""
    from nightherd.imports import lastlight

    return lastlight.opened_workflows(path, report)


@asynccontextmanager
async def open_fleet_import(
    state_dir: Path, fleet: Fleet | None, environ: Mapping[str, str], *, is_dry: bool
) -> AsyncIterator[ImportContext]:
    """Open what an import needs on `state_dir`, with the schedules and workflows that the fleet declares."""
    async with open_import(state_dir, fleet, environ, is_dry=is_dry) as context:
        if fleet is None:
            yield context
        else:
            yield replace(
                context, schedules=declared_schedules(fleet), workflows=tuple(fleet.workflows)
            )


def declared_schedules(fleet: Fleet) -> tuple[str, ...]:
    """Return the schedules of a fleet by their keys, those of workflows included."""
    agents = [
        schedule_id(name, schedule)
        for name, agent in fleet.agents.items()
        for schedule in agent.schedules
    ]
    workflows = [
        schedule_id(f"workflow:{name}", schedule)
        for name, workflow in fleet.workflows.items()
        for schedule in workflow.triggers.schedules
    ]
    return (*agents, *workflows)
