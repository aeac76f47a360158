"""Import the workflows of other tools, and sessions that were sent."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nightherd.model.schedules.schedule import schedule_id
from nightherd.wiring.repair import open_import

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractContextManager

    from nightherd.engine.imports.context import ImportContext, Report
    from nightherd.engine.imports.foreign_runs import ForeignWorkflows
    from nightherd.engine.imports.session import AdoptedSession
    from nightherd.model.agents.agent import Fleet

SENT = Path("the file")
"""What errors call content that came without a path."""


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


def import_exported_session(
    content: bytes, state_dir: Path, fleet: Fleet, environ: Mapping[str, str], *, is_dry: bool
) -> AdoptedSession:
    """Import the exported session that `content` is, and return when it is done: call it in a thread.

    `UsageError` says why the content is no exported session.
    """
    import anyio

    from nightherd.engine.operations.transfer import ImportSession, import_session
    from nightherd.errors import StateFileError, UsageError
    from nightherd.imports.session_file import parse_session_file

    try:
        request = ImportSession(file=parse_session_file(content, SENT))
    except StateFileError as error:
        raise UsageError(error.message, next_step=error.next_step) from error

    async def run() -> AdoptedSession:
        # The mirror of the process that serves follows the rows by itself.
        alone = replace(fleet, mirror=False)
        async with open_import(state_dir, alone, environ, is_dry=is_dry) as context:
            return await import_session(request, context)

    return anyio.run(run)
