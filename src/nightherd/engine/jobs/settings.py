"""The settings of an execution: what makes its agent what it is, recorded once for all that have the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from anyio import to_thread

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.workflows.phase_agent import phase_agent
from nightherd.engine.workflows.run_context import RunContext
from nightherd.model.agents.agent import Agent
from nightherd.model.config_value import Layer
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.options import JobOptions
from nightherd.model.jobs.overrides import overridden
from nightherd.model.jobs.settings import Stage, StoredSettings, settings_of, stored_settings
from nightherd.model.journal.settings_ref import SettingsRef
from nightherd.model.schedules.jobs import for_schedule

MOST_KNOWN = 4_096
"""Settings that a worker remembers to have stored."""


def stages_of(job: Job, agent: Agent, options: JobOptions, context: RunContext) -> Sequence[Stage]:
    """Return the agent as each layer makes it; the last one is what an execution of the job has."""
    scheduled = for_schedule(agent, job.schedule)
    phase = phase_agent(job, scheduled, context)
    return (
        Stage(Layer.HELD, agent),
        Stage(Layer.SCHEDULE, scheduled),
        Stage(Layer.RUN, phase),
        Stage(Layer.REQUEST, overridden(phase, options)),
    )


async def record_settings(
    job: Job, stages: Sequence[Stage], options: JobOptions, context: WorkerContext
) -> SettingsRef | None:
    """Store the settings, unless that was done; None for an agent that no file declares.

    They are durable when this returns, so before a line names them.
    """
    declared = stages[0].agent.declared
    if declared is None:
        return None
    values = settings_of(declared(), stages, job.schedule, options)
    stored = stored_settings(job.agent, values, context.secrets.mask, context.home)
    content = msgspec.json.encode(stored)
    name = sha256(content).hexdigest()
    known = context.settings_stored.get(name)
    if known is None:
        kept = await to_thread.run_sync(context.journals.keep_output, (content.decode(),))
        known = SettingsRef(sha256=kept.sha256, size=kept.size)
        if len(context.settings_stored) >= MOST_KNOWN:
            context.settings_stored.clear()
        context.settings_stored[name] = known
    return known


def settings_now(
    job: Job,
    agent: Agent,
    options: JobOptions,
    context: RunContext,
    mask: Callable[[Any], Any],
) -> StoredSettings | None:
    """Return the settings that an execution of the job would have now; None for an agent that no file declares."""
    if agent.declared is None:
        return None
    stages = stages_of(job, agent, options, context)
    values = settings_of(agent.declared(), stages, job.schedule, options)
    return stored_settings(job.agent, values, mask, context.home)
