"""Work sources: their trackers, and those who take issues and settle them."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nightherd.engine.contexts import FleetContext
    from nightherd.engine.work.context import WorkContext
    from nightherd.engine.work.intake import Intake
    from nightherd.engine.work.settler import Settler
    from nightherd.model.agents.agent import Fleet
    from nightherd.model.work.source import WorkSource
    from nightherd.ports import Probe
    from nightherd.ports.work import WorkTracker

UNNAMED = "a fleet"


def make_work(
    fleet: Fleet, context: FleetContext, by: str, report: Callable[[str], None]
) -> tuple[Intake, Settler]:
    """What takes issues for the schedules of the process called `by`, and what settles them."""
    from nightherd.engine.work.intake import Intake
    from nightherd.engine.work.settler import Settler

    work = work_context(fleet, context, by)
    return Intake(work), Settler(fleet, work, report)


def work_context(
    fleet: Fleet, context: FleetContext, by: str, probe: Probe | None = None
) -> WorkContext:
    """The ports of work sources, for the process called `by`."""
    from nightherd.engine.work.context import WorkContext
    from nightherd.ports import no_probe

    return WorkContext(
        fleet=context,
        open_tracker=open_tracker,
        by=by,
        fleet_name=fleet_name_of(fleet),
        probe=probe or no_probe,
    )


def fleet_name_of(fleet: Fleet) -> str:
    """What other fleets read about who has an issue."""
    return fleet.name or posixpath.basename(posixpath.dirname(fleet.file)) or UNNAMED


def open_tracker(source: WorkSource, token: Callable[[], str]) -> WorkTracker:
    """The tracker of a source."""
    from nightherd.triggers.work.github import GithubTracker

    return GithubTracker(source, token)
