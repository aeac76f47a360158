"""A pinned workflow: its definition with the settings of the agents it uses, as they were when a run began.

Nothing that may hold a secret is pinned: servers, hooks, notifications and plugins are those of the fleet as it is.
What an agent may do is never more than the fleet allows it now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, get_type_hints

import msgspec

from nightherd.decoding import convert, json_decoder
from nightherd.model.agents.agent import Agent
from nightherd.model.limits.limits import Limits
from nightherd.model.workflows.definition import (
    AgentAction,
    WorkflowAction,
    WorkflowDefinition,
    canonical_json,
    every_phase,
    read_definition,
)
from nightherd.model.workflows.rows import PinnedWorkflow

PINNED_FIELDS = (
    "working_directory",
    "workspace",
    "repo",
    "script",
    "model",
    "fallback_model",
    "effort",
    "system_prompt",
    "max_turns",
    "max_budget_microusd",
    "job_timeout",
    "permission_mode",
    "tools",
    "allowed_tools",
    "denied_tools",
    "approvals",
    "questions",
    "idempotent_tools",
    "required_caps",
    "add_dirs",
    "setting_sources",
    "subagents",
    "sandbox",
    "limits",
    "operation",
)
"""The settings of an agent that a run keeps."""


class PinnedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as a run began with it."""

    runtime: str
    working_directory: str
    operation: str = "autonomous"
    is_contained: bool = False
    """Whether it had a container; which one it has is the fleet's to say, as it is now."""
    settings: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        """What each of its jobs may use."""
        return convert(self.settings.get("limits", {}), Limits)


class PinnedBody(msgspec.Struct, frozen=True, kw_only=True):
    """What is pinned."""

    definition: WorkflowDefinition
    home: str = ""
    """The directory of the outermost fleet file."""
    agents: Mapping[str, PinnedAgent] = msgspec.field(default_factory=dict)

    @property
    def commands_directory(self) -> str:
        """Where commands run: where the workflow says, else beside the fleet file that declares it."""
        return self.definition.working_directory or self.definition.home or self.home


_DECODER = json_decoder(PinnedBody)
READ_AT_ONCE = 64
"""Pinned workflows that are kept in memory."""


def agents_of(definition: WorkflowDefinition) -> Iterator[str]:
    """Yield the agents that the phases of a workflow name, those of sub-workflows included."""
    for phase in every_phase(definition.phases):
        match phase.action:
            case AgentAction(agent=agent):
                yield agent
            case WorkflowAction(definition=inner) if inner is not None:
                yield from agents_of(inner)
            case _:
                pass


def pin(
    definition: WorkflowDefinition,
    agents: Mapping[str, Agent],
    mask: Callable[[Any], Any],
    at: datetime,
    home: str,
) -> PinnedWorkflow:
    """Return the workflow to be recorded; `mask` takes secrets out, and an agent's setting that has one is not pinned."""
    names = dict.fromkeys(agents_of(definition))
    pinned = {name: _pin_agent(agents[name], mask) for name in names if name in agents}
    masked = _masked(definition, mask)
    return as_row(PinnedBody(definition=masked, home=home, agents=pinned), at)


def _masked(definition: WorkflowDefinition, mask: Callable[[Any], Any]) -> WorkflowDefinition:
    """Return the workflow without the secrets that its texts hold."""
    known = msgspec.json.decode(canonical_json(definition))
    masked = mask(known)
    return definition if masked == known else read_definition(msgspec.json.encode(masked))


def pin_part(body: PinnedBody, definition: WorkflowDefinition, at: datetime) -> PinnedWorkflow:
    """Return a sub-workflow of a pinned workflow, pinned by itself with the same agents."""
    names = dict.fromkeys(agents_of(definition))
    agents = {name: body.agents[name] for name in names if name in body.agents}
    return as_row(PinnedBody(definition=definition, home=body.home, agents=agents), at)


def moved_path(path: str, before: str, now: str) -> str:
    """Return where a path is when the directory `before` is at `now`; the path itself when it is not below it."""
    if not before or not now or not (path == before or path.startswith(f"{before}/")):
        return path
    return now + path[len(before) :]


def as_row(body: PinnedBody, at: datetime) -> PinnedWorkflow:
    """Return what is pinned, as it is recorded."""
    content = msgspec.json.encode(body, order="sorted")
    return PinnedWorkflow(
        hash=sha256(content).hexdigest(),
        name=body.definition.name,
        created_at=at,
        body=content.decode(),
    )


def _pin_agent(agent: Agent, mask: Callable[[Any], Any]) -> PinnedAgent:
    settings: dict[str, Any] = {}
    for name in PINNED_FIELDS:
        # As JSON: masking makes lists of tuples, and they would not be equal.
        value = msgspec.json.decode(msgspec.json.encode(getattr(agent, name)))
        if mask(value) == value:
            settings[name] = value
    return PinnedAgent(
        runtime=agent.runtime.name,
        working_directory=agent.working_directory,
        operation=agent.operation,
        is_contained=agent.container is not None,
        settings=settings,
    )


@lru_cache(maxsize=READ_AT_ONCE)
def read_pinned(body: str) -> PinnedBody:
    """Return what `pin` wrote."""
    return _DECODER.decode(body)


@lru_cache(maxsize=READ_AT_ONCE)
def pinned_settings(body: str, agent: str) -> Mapping[str, Any]:
    """Return the settings of an agent that `pin` wrote, by field; none for an agent that is not pinned."""
    pinned = read_pinned(body).agents.get(agent)
    if pinned is None:
        return {}
    hints = _agent_fields()
    return {
        name: convert(pinned.settings[name], hints[name])
        for name in PINNED_FIELDS
        if name in pinned.settings
    }


@lru_cache(maxsize=1)
def _agent_fields() -> Mapping[str, Any]:
    return get_type_hints(Agent)
