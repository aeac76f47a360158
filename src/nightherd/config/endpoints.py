"""Webhook endpoints: what each starts is there, and every one starts something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nightherd.config.report import Findings
from nightherd.config.schema.fleet import FleetSettings, WebhookEndpoint
from nightherd.config.wording import did_you_mean
from nightherd.files.yaml_nodes import MappingNode, Node, problem_at
from nightherd.model.agents.agent import Agent
from nightherd.model.text import quote
from nightherd.model.workflows.definition import WorkflowDefinition

OF_AGENTS = ("schedule", "prompt", "inputs", "channel")
"""Keys of an endpoint that say what its agent is asked."""


def endpoints_of(settings: FleetSettings) -> Mapping[str, WebhookEndpoint]:
    """The endpoints of the fleet, by name."""
    return {} if settings.webhooks is None else settings.webhooks.endpoints


def check_endpoints(
    settings: FleetSettings,
    node: MappingNode,
    agents: Mapping[str, Agent | None],
    findings: Findings,
) -> None:
    """Every webhook's agent and schedule is there, and what it is signed with has a name.

    None stands for an agent that is declared, and what is wrong with it is reported already.
    """
    for name, endpoint in endpoints_of(settings).items():
        path = f"webhooks.endpoints.{name}"
        if endpoint.agent is not None:
            agent, schedule = agents.get(endpoint.agent), endpoint.schedule
            if endpoint.agent not in agents:
                message = f"the fleet has no agent {quote(endpoint.agent)}"
                hint = did_you_mean(endpoint.agent, sorted(agents))
                findings.add(problem_at(value_at(node, path), message, path=path, hint=hint))
            elif agent is not None and schedule is not None and schedule not in agent.schedules:
                message = f"{quote(endpoint.agent)} has no schedule {quote(schedule)}"
                hint = did_you_mean(schedule, sorted(agent.schedules))
                findings.add(problem_at(value_at(node, path), message, path=path, hint=hint))
            elif agent is not None and schedule and agent.schedules[schedule].work is not None:
                message = f"{quote(schedule)} takes issues at its slots; a message cannot fire it"
                hint = "name no schedule, or one without a work source"
                findings.add(problem_at(value_at(node, path), message, path=path, hint=hint))
        shared = settings.webhooks
        if not (endpoint.secret_env or (shared is not None and shared.secret_env)):
            message = "webhooks must be signed: 'secret_env' is missing"
            findings.add(problem_at(value_at(node, path), message, path=path))


def check_endpoints_are_used(
    settings: FleetSettings,
    node: MappingNode,
    workflows: Iterable[WorkflowDefinition],
    findings: Findings,
) -> None:
    """Every webhook has an agent, or starts a workflow; without an agent it says nothing about its job."""
    started = {name for workflow in workflows for name in workflow.triggers.webhooks}
    for name, endpoint in endpoints_of(settings).items():
        path = f"webhooks.endpoints.{name}"
        if endpoint.agent is not None:
            continue
        if name not in started:
            message = "the webhook starts nothing: name an 'agent', or name it under 'on.webhooks' of a workflow"
            findings.add(problem_at(value_at(node, path), message, path=path))
        for key in OF_AGENTS:
            entry = value_at(node, path)
            given = entry.entries.get(key) if isinstance(entry, MappingNode) else None
            if given is not None:
                message = f"{quote(key)} is for the job of an agent, and no 'agent' is named"
                hint = "a workflow says what it takes from the message under 'on.webhooks'"
                findings.add(problem_at(given.key, message, path=f"{path}.{key}", hint=hint))


def value_at(node: MappingNode, path: str) -> Node:
    """What stands at a dotted path of a checked document."""
    found: Node = node
    for step in path.split("."):
        entry = found.entries.get(step) if isinstance(found, MappingNode) else None
        if entry is None:
            return found
        found = entry.value
    return found
