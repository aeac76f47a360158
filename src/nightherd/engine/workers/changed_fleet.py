"""A context for a fleet that changed: what jobs and slots need of the new one, in place of the old."""

from __future__ import annotations

import posixpath

from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations.tokens import TOKEN_VARIABLE
from nightherd.model.agents.agent import Fleet


def for_fleet(context: WorkerContext, fleet: Fleet, before: Fleet) -> WorkerContext:
    """The same worker and the same memories, with the limits, hooks, variables and secrets of `fleet`.

    Variables that `before` set and `fleet` does not are gone; what was secret there still is masked: jobs
    that began with it may still say it.
    """
    kept = {
        name: value for name, value in context.environment.items() if name not in before.environment
    }
    environment = {**kept, **fleet.environment}
    secrets = context.secrets.joined(context.find_secrets(fleet, environment))
    context.log.know(secrets)
    return replace(
        context,
        environment={k: v for k, v in environment.items() if k != TOKEN_VARIABLE},
        secrets=secrets,
        fleet_limit=fleet.max_concurrent,
        budget=fleet.limits,
        retry=fleet.retry,
        prices=fleet.prices,
        agents=fleet.agents,
        withheld=fleet.withheld,
        workflows=fleet.workflows,
        withheld_workflows=fleet.withheld_workflows,
        home=posixpath.dirname(fleet.file),
        protected=None if context.protect is None else context.protect(fleet),
    )
