"""Workflows as every surface shows them: as a row, as a document, and as the graph of their phases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

import msgspec

from nightherd.model.workflows.definition import (
    AgentAction,
    BlockAction,
    CommandAction,
    GateAction,
    OnFailure,
    Phase,
    TriggerRule,
    WaitAction,
    WorkflowAction,
    WorkflowDefinition,
    definition_hash,
    every_phase,
)
from nightherd.model.workflows.graph import in_order
from nightherd.model.workflows.rows import WorkflowOverride
from nightherd.views.jobs.jobs import timestamp


class PhaseView(msgspec.Struct, frozen=True, kw_only=True):
    """A phase of a workflow, with those inside it. Its dependencies come before it."""

    path: str
    """Its name, after those of the blocks around it: `rest/pause`."""
    kind: str
    """`agent`, `bash`, `python`, `workflow`, `gate`, `wait` or `block`."""
    does: str
    """The agent, command, workflow, summary, or what it waits for."""
    phase: Phase
    inside: tuple[PhaseView, ...] = ()

    @property
    def parent(self) -> str:
        """The path of the block around it; empty for a phase of the workflow itself."""
        return self.path.rpartition("/")[0]

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The paths of the phases that it waits for."""
        prefix = f"{self.parent}/" if self.parent else ""
        return tuple(f"{prefix}{name}" for name in self.phase.depends_on)


def phase_views(definition: WorkflowDefinition) -> tuple[PhaseView, ...]:
    """Return the phases of a workflow, dependencies first, each with those inside it."""
    return _views(definition.phases, "")


def _views(phases: tuple[Phase, ...], prefix: str) -> tuple[PhaseView, ...]:
    views = []
    for phase in in_order(phases):
        path = f"{prefix}{phase.name}"
        kind, does = _does(phase)
        inside = _views(phase.block, f"{path}/")
        views.append(PhaseView(path=path, kind=kind, does=does, phase=phase, inside=inside))
    return tuple(views)


def _does(phase: Phase) -> tuple[str, str]:
    match phase.action:
        case AgentAction(agent=agent):
            return "agent", agent
        case CommandAction(language=language, command=command):
            return language.value, command.strip()
        case WorkflowAction(workflow=workflow):
            return "workflow", workflow
        case GateAction(summary=summary):
            return "gate", summary
        case WaitAction(duration=duration, until=until, event=event):
            return "wait", duration or (f"until {until}" if until else f"for event {event}")
        case BlockAction():
            return "block", ""


def every_view(views: tuple[PhaseView, ...]) -> Iterator[PhaseView]:
    """Yield the phases and those inside them, in order."""
    for view in views:
        yield view
        yield from every_view(view.inside)


class WorkflowRow(TypedDict):
    """A workflow of the fleet file."""

    name: str
    description: str | None
    hash: str
    phase_count: int
    inputs: list[str]
    schedules: list[str]
    webhooks: list[str]
    chat: bool
    api: bool


class SwitchRow(TypedDict):
    """Whether a workflow starts runs, and who switched it on or off beside its file."""

    is_enabled: bool
    is_overridden: bool
    updated_at: str | None
    updated_by: str | None


class SwitchedWorkflowRow(WorkflowRow, SwitchRow):
    """A workflow as lists have it."""


class WorkflowDocument(WorkflowRow):
    """A workflow with its whole definition, as a run keeps it."""

    definition: WorkflowDefinition


class SwitchedWorkflow(WorkflowDocument, SwitchRow):
    """A workflow with its whole definition, and whether it is enabled."""


class GraphPhaseRow(TypedDict):
    """One phase of a graph."""

    path: str
    parent: str | None
    name: str
    label: str | None
    kind: str
    does: str
    depends_on: list[str]
    trigger_rule: TriggerRule
    when: str | None
    on_failure: OnFailure
    retries: int
    for_each: str | None
    max_iterations: int | None


EdgeRow = TypedDict("EdgeRow", {"from": str, "to": str})
"""That a phase waits for another, by their paths."""


class WorkflowGraph(TypedDict):
    """The phases of a workflow and what each waits for."""

    name: str
    phases: list[GraphPhaseRow]
    edges: list[EdgeRow]


def workflow_row(definition: WorkflowDefinition) -> WorkflowRow:
    """Return a workflow as lists show it."""
    triggers = definition.triggers
    return {
        "name": definition.name,
        "description": definition.description or None,
        "hash": definition_hash(definition),
        "phase_count": sum(1 for _ in every_phase(definition.phases)),
        "inputs": list(definition.inputs),
        "schedules": list(triggers.schedules),
        "webhooks": list(triggers.webhooks),
        "chat": triggers.chat is not None,
        "api": triggers.api,
    }


def switch_row(override: WorkflowOverride | None) -> SwitchRow:
    """Return whether a workflow starts runs, and who switched it on or off beside its file."""
    return {
        "is_enabled": override is None or override.enabled,
        "is_overridden": override is not None,
        "updated_at": None if override is None else timestamp(override.updated_at),
        "updated_by": None if override is None else override.updated_by,
    }


def workflow_document(definition: WorkflowDefinition) -> WorkflowDocument:
    """Return a workflow with its whole definition, as a run keeps it."""
    return {**workflow_row(definition), "definition": msgspec.to_builtins(definition)}


def workflow_graph(definition: WorkflowDefinition) -> WorkflowGraph:
    """Return the phases of a workflow and what each waits for, by their paths."""
    views = list(every_view(phase_views(definition)))
    return {
        "name": definition.name,
        "phases": [phase_row(view) for view in views],
        "edges": [{"from": name, "to": view.path} for view in views for name in view.depends_on],
    }


def phase_row(view: PhaseView) -> GraphPhaseRow:
    """Return one phase of a graph."""
    phase = view.phase
    return {
        "path": view.path,
        "parent": view.parent or None,
        "name": phase.name,
        "label": phase.label,
        "kind": view.kind,
        "does": view.does,
        "depends_on": list(view.depends_on),
        "trigger_rule": phase.trigger_rule,
        "when": phase.when,
        "on_failure": phase.on_failure,
        "retries": phase.retries,
        "for_each": None if phase.for_each is None else phase.for_each.items,
        "max_iterations": None if phase.loop is None else phase.loop.max_iterations,
    }
