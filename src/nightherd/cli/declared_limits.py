"""What is declared for a job that has not begun: what it will be held to is in the fleet file only."""

from __future__ import annotations

from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.invocation import Invocation
from nightherd.engine.limits import limits_for
from nightherd.errors import NightherdError
from nightherd.model.limits import Limits
from nightherd.views.job_document import JobView


def declared_limits(invocation: Invocation, view: JobView) -> Limits | None:
    """What the job may use that begins now; None when its agent is not to be found."""
    try:
        fleet = load_fleet_told(invocation, is_quiet=True)
    except NightherdError:
        return None  # a fleet file that is gone or wrong is told by commands that need it
    agent = fleet.agents.get(view.job.agent)
    if agent is None or view.texts is None:
        return None
    return limits_for(view.job, view.texts.overrides, agent)
