"""What a run of a workflow would do: its phases in order, and which of them its inputs already decide about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nightherd.model.units import format_duration
from nightherd.model.workflows.begin import CannotBeginError, condition, items
from nightherd.model.workflows.definition import (
    AgentAction,
    CommandAction,
    GateAction,
    Phase,
    WaitAction,
    WorkflowAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.expressions.parser import parse
from nightherd.model.workflows.expressions.tree import Mistake, paths_of
from nightherd.model.workflows.graph import in_order
from nightherd.model.workflows.instance import Instance, top_level
from nightherd.model.workflows.records import Records
from nightherd.model.workflows.run import RunFacts, RunId, RunStatus
from nightherd.model.workflows.scope import At, Context
from nightherd.model.workflows.triggers import RunTrigger
from nightherd.views.runs.tree import ACTION_KINDS

KNOWN_BEFORE = frozenset({"inputs", "trigger"})
"""Roots of expressions that have their values before a run begins."""


class PlannedPhase(msgspec.Struct, frozen=True, kw_only=True):
    """A phase as a run would find it."""

    path: str
    kind: str
    does: str
    """The agent, language, workflow or kind of gate."""
    text: str
    """The prompt, command, summary or time, as the file has it."""
    phase: Phase
    holds: bool | None = None
    """Whether its condition is true; None without one, or when phases before it decide."""
    problem: str | None = None
    """Why its condition or its list has no value."""
    count: int | None = None
    """How many items it has; None when it has no list, or phases before it make the list."""
    inside: tuple[PlannedPhase, ...] = ()


def plan_run(
    definition: WorkflowDefinition, inputs: Mapping[str, Any], trigger: RunTrigger
) -> tuple[PlannedPhase, ...]:
    """Return the phases so that each comes after those it depends on. `inputs` are complete."""
    facts = RunFacts(
        id=RunId(""), workflow=definition.name, started_at="", attempt=1, status=RunStatus.QUEUED
    )
    context = Context(
        definition=definition,
        inputs=dict(inputs),
        trigger=trigger,
        run=facts,
        records=Records(nodes={}, outputs=lambda key: None),
    )
    return tuple(_planned(context, top_level(definition.phases), definition.phases))


def _planned(
    context: Context, instances: Iterator[Instance], phases: tuple[Phase, ...]
) -> Iterator[PlannedPhase]:
    places = {instance.phase.name: instance for instance in instances}
    for phase in in_order(phases):
        yield _phase(context, places[phase.name])


def _phase(context: Context, instance: Instance) -> PlannedPhase:
    phase = instance.phase
    holds, count, problem = None, None, None
    try:
        if phase.when is not None and _is_known(phase.when):
            holds = condition(context, instance, At.START, "when", phase.when)
        if phase.for_each is not None and _is_known(phase.for_each.items):
            value = items(context, instance, phase.for_each.items)
            count = len(value) if isinstance(value, list | tuple) else None
    except CannotBeginError as error:
        problem = str(error)
    does, text = _action(phase)
    return PlannedPhase(
        path=instance.path,
        kind=ACTION_KINDS[type(phase.action)],
        does=does,
        text=text,
        phase=phase,
        holds=holds,
        problem=problem,
        count=count,
        inside=tuple(_planned(context, instance.inside(), phase.block)),
    )


def _is_known(expression: str) -> bool:
    """Whether nothing that an expression uses comes from the run itself."""
    tree = parse(expression)
    return not isinstance(tree, Mistake) and {path.root for path in paths_of(tree)} <= KNOWN_BEFORE


def _action(phase: Phase) -> tuple[str, str]:
    match phase.action:
        case AgentAction(agent=agent, prompt=prompt, skill=skill):
            return agent, prompt or (f"skill {skill}" if skill else "")
        case CommandAction(language=language, command=command):
            return language.value, command
        case WorkflowAction(workflow=workflow):
            return workflow, ""
        case GateAction(gate=gate, summary=summary):
            return gate.value, summary
        case WaitAction(duration=duration, until=until, event=event):
            return "event" if event else "time", event or duration or until or ""
        case _:
            return "", ""


def plan_document(
    definition: WorkflowDefinition, inputs: Mapping[str, Any], phases: tuple[PlannedPhase, ...]
) -> dict[str, Any]:
    """Return what a run would do as plain data."""
    return {
        "workflow": definition.name,
        "inputs": dict(inputs),
        "phases": [_phase_row(phase) for phase in phases],
    }


def _phase_row(planned: PlannedPhase) -> dict[str, Any]:
    phase = planned.phase
    return {
        "path": planned.path,
        "kind": planned.kind,
        "does": planned.does or None,
        "text": planned.text or None,
        "label": phase.label,
        "depends_on": list(phase.depends_on),
        "trigger_rule": phase.trigger_rule.value,
        "when": phase.when,
        "when_value": planned.holds,
        "problem": planned.problem,
        "for_each": None if phase.for_each is None else phase.for_each.items,
        "items": planned.count,
        "max_iterations": None if phase.loop is None else phase.loop.max_iterations,
        "retries": phase.retries,
        "timeout": None if phase.timeout is None else format_duration(phase.timeout),
        "phases": [_phase_row(inner) for inner in planned.inside],
    }
