"""A workshop for a fleet that changed: what jobs and slots need of the new one, in place of the old."""

from __future__ import annotations

from dataclasses import replace

from nightherd.engine.hooks import JobHooks
from nightherd.engine.workshop import Workshop
from nightherd.model.agent import Fleet


def for_fleet(workshop: Workshop, fleet: Fleet, before: Fleet) -> Workshop:
    """The same worker and the same memories, with the limits, hooks, variables and secrets of `fleet`.

    Variables that `before` set and `fleet` does not are gone; what was secret there still is masked: jobs
    that began with it may still say it.
    """
    kept = {
        name: value
        for name, value in workshop.environment.items()
        if name not in before.environment
    }
    environment = {**kept, **fleet.environment}
    hooks = workshop.hooks
    secrets = workshop.secrets.joined(workshop.find_secrets(fleet, environment))
    workshop.log.know(secrets)
    return replace(
        workshop,
        environment=environment,
        secrets=secrets,
        fleet_limit=fleet.max_concurrent,
        budget=fleet.limits,
        retry=fleet.retry,
        prices=fleet.prices,
        agents=fleet.agents,
        protected=None if workshop.protect is None else workshop.protect(fleet),
        hooks=replace(hooks, agents=fleet.agents) if isinstance(hooks, JobHooks) else hooks,
    )
