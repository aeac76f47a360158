"""The agent of a phase: as it was when the run began, never with more than the fleet allows it now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from nightherd.engine.workflows.command_container import in_container, model_agent
from nightherd.engine.workflows.run_context import RunContext
from nightherd.errors import WorkspaceError
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.job import Job
from nightherd.model.limits.limits import LimitName, Limits, OnLimit
from nightherd.model.permissions.grants import agent_grants
from nightherd.model.permissions.restrain import cut_back
from nightherd.model.problem import Place, Problem
from nightherd.model.workflows.command import COMMANDS_AGENT
from nightherd.model.workflows.conductor.pinned import moved_path, pinned_settings, read_pinned
from nightherd.model.workflows.definition import AgentAction
from nightherd.model.workflows.instance import locate
from nightherd.model.workflows.rows import PinnedWorkflow, WorkflowNode
from nightherd.model.workflows.run import RunId
from nightherd.model.workspaces.policy import WorkspacePolicy, WorkspaceScope

DURATION = LimitName.DURATION
MOST_PINNED = 64
"""Pinned workflows that a worker remembers."""


def find_phase(job: Job, context: RunContext) -> tuple[PinnedWorkflow, WorkflowNode] | None:
    """Return what the job is a phase of; None for a job that is none."""
    if job.workflow_run_id is None or job.node_id is None:
        return None
    run = context.reader.find_run(RunId(job.workflow_run_id))
    node = context.reader.find_node(job.node_id)
    pinned = None if run is None else _pinned(run.definition_hash, context)
    return None if node is None or pinned is None else (pinned, node)


def _pinned(key: str, context: RunContext) -> PinnedWorkflow | None:
    known = context.pinned.get(key)
    if known is None:
        known = context.reader.find_pinned(key)
        if known is not None:
            if len(context.pinned) >= MOST_PINNED:
                context.pinned.clear()
            context.pinned[key] = known
    return known


def phase_agent(job: Job, agent: Agent, context: RunContext) -> Agent:
    """Return the agent that an execution of the job has; the agent itself for a job that is no phase."""
    phase = find_phase(job, context)
    if phase is None:
        return agent
    pinned, node = phase
    body = read_pinned(pinned.body)
    definition = body.definition
    directory = definition.working_directory
    if agent.name == COMMANDS_AGENT:
        directory = body.commands_directory
        agent = _placed(agent, pinned, node, context)
    else:
        agent = _as_pinned(agent, pinned_settings(pinned.body, agent.name), context.home)
    action = locate(definition.phases, node.key).phase.action
    limits = action.limits if isinstance(action, AgentAction) else Limits()
    limits = replace(limits.over(agent.limits), per_day=agent.limits.per_day)
    return replace(
        agent,
        limits=_failing_with_run(limits, job, context),
        # A fleet that was moved since the run began took its directories along.
        working_directory=moved_path(directory, body.home, context.home)
        if directory
        else agent.working_directory,
        workspace=definition.workspace or shared_by_run(agent.workspace),
    )


def _placed(
    commands: Agent, pinned: PinnedWorkflow, node: WorkflowNode, context: RunContext
) -> Agent:
    """Return the agent of commands where this one runs; blocked, where that is not to be had."""
    try:
        model = model_agent(pinned, node, context, _pinned)
    except WorkspaceError as error:
        place = Place(file=context.home, line=1, column=1)
        problem = Problem(place=place, message=error.message, hint=error.hint)
        return replace(commands, blocked_by=(problem,))
    if model is None:
        return commands
    model = _as_pinned(model, pinned_settings(pinned.body, model.name), context.home)
    return in_container(commands, model)


def _failing_with_run(own: Limits, job: Job, context: RunContext) -> Limits:
    """Return the limits of a job, which fails at the `duration` of its run where that is shorter and says so."""
    above = _limits_above(RunId(job.workflow_run_id or ""), context)
    if not any(one.duration and one.outcome(DURATION) is OnLimit.FAIL for one in above):
        return own
    texts = context.reader.find_texts(job.id)
    given = (texts.overrides.limits if texts is not None else None) or {}
    most, declared = given.get(DURATION.value), own.maximum(DURATION)
    if most is None or (declared is not None and declared <= most):
        return own
    return replace(own, outcomes={**own.outcomes, DURATION: OnLimit.FAIL})


def _limits_above(run_id: RunId | None, context: RunContext) -> Iterator[Limits]:
    """Yield the limits that the workflow of a run declares, and those of the runs above it."""
    while run_id is not None:
        run = context.reader.find_run(run_id)
        pinned = None if run is None else _pinned(run.definition_hash, context)
        if run is None or pinned is None:
            return
        yield read_pinned(pinned.body).definition.limits
        run_id = run.parent_run_id


def _as_pinned(agent: Agent, settings: Mapping[str, Any], home: str) -> Agent:
    """Return the agent with its pinned settings, cut back to what the fleet grants it now."""
    if all(getattr(agent, name) == value for name, value in settings.items()):
        return agent
    known = agent_grants(agent, home)
    return cut_back(replace(agent, **settings), known, agent, home)


def shared_by_run(policy: WorkspacePolicy) -> WorkspacePolicy:
    """Return the agent's own policy, but that all phases of a run share the workspace."""
    return replace(policy, scope=WorkspaceScope.RUN)
