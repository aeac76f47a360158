"""A workshop for a fleet that changed: what jobs and slots need of the new one, in place of the old."""

from __future__ import annotations

from dataclasses import replace

from nightherd.engine.hooks import JobHooks
from nightherd.engine.workshop import Workshop
from nightherd.model.agent import Fleet
from nightherd.model.secret import secrets_of


def for_fleet(workshop: Workshop, fleet: Fleet) -> Workshop:
    """The same worker and the same memories, with the limits, hooks, variables and secrets of `fleet`.

    A variable that the fleet no longer sets stays until the process ends.
    """
    environment = {**workshop.environment, **fleet.environment}
    hooks = workshop.hooks
    return replace(
        workshop,
        environment=environment,
        secrets=secrets_of(fleet, environment),
        fleet_limit=fleet.max_concurrent,
        budget=fleet.limits,
        agents=fleet.agents,
        hooks=replace(hooks, agents=fleet.agents) if isinstance(hooks, JobHooks) else hooks,
    )
