"""`nightherd workflow run --dry-run`: what a run would do, without recording anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nightherd.cli.invocation import Invocation
from nightherd.cli.screen.render import Screen, neutralise, one_line
from nightherd.cli.workflows.declared import read_switches
from nightherd.errors import AgentBlockedError, RefusedError
from nightherd.model.agents.agent import Fleet, get_agent
from nightherd.model.text import counted, input_text
from nightherd.model.workflows.conductor.pinned import agents_of
from nightherd.model.workflows.definition import TriggerRule, WorkflowDefinition
from nightherd.model.workflows.triggers import RunTrigger
from nightherd.next_step import Action, NextStep
from nightherd.views.runs.plan import PlannedPhase, plan_document, plan_run
from nightherd.wiring.runtimes import check_runtime
from nightherd.wiring.stores import system_clock

TEXT_LIMIT = 100


def show_plan(
    invocation: Invocation, fleet: Fleet, definition: WorkflowDefinition, inputs: Mapping[str, Any]
) -> None:
    """Show the phases in order, or raise what would keep the run from starting. Nothing is recorded."""
    check_agents(fleet, definition)
    check_enabled(invocation, definition.name)
    phases = plan_run(definition, inputs, RunTrigger())
    screen = invocation.screen
    if screen.is_json:
        document = plan_document(definition, inputs, phases)
        screen.document("workflow_plan", document, system_clock().now())
        return
    lines = [
        f"input     {one_line(name)}={one_line(input_text(value), TEXT_LIMIT)}"
        for name, value in inputs.items()
        if value is not None
    ]
    drawn = draw_plan(phases, screen)
    screen.show("\n".join([*lines, "", *drawn] if lines else drawn))
    screen.flush()
    screen.say("dry run: nothing was recorded")


def check_agents(fleet: Fleet, definition: WorkflowDefinition) -> None:
    """Raise what keeps an agent of the workflow from running here."""
    for name in dict.fromkeys(agents_of(definition)):
        agent = get_agent(fleet.agents, name, fleet.withheld)
        if agent.blocked_by:
            raise AgentBlockedError(agent.name, agent.blocked_by)
        check_runtime(agent.runtime.name)


def check_enabled(invocation: Invocation, name: str) -> None:
    """`RefusedError` for a workflow that a person has switched off."""
    switch = read_switches(invocation).get(name)
    if switch is not None and not switch.enabled:
        raise RefusedError(
            f"workflow {name} was switched off",
            next_step=NextStep(Action.ENABLE_WORKFLOW, workflow=name),
        )


def draw_plan(phases: Sequence[PlannedPhase], screen: Screen) -> list[str]:
    """Return a line for each phase, and one for its condition."""
    cells = list(_rows(phases, 0))
    name_width = max(len(name) for name, _, _ in cells)
    does_width = max(len(does) for _, does, _ in cells)
    lines: list[str] = []
    for name, does, planned in cells:
        text = one_line(planned.text, TEXT_LIMIT)
        lines.append(f"{name:<{name_width}}  {does:<{does_width}}  {text}".rstrip())
        indent = " " * (len(name) - len(name.lstrip()) + 2)
        lines += [indent + screen.out.dim(note) for note in _notes(planned)]
    return lines


def _rows(phases: Sequence[PlannedPhase], depth: int) -> Iterator[tuple[str, str, PlannedPhase]]:
    for planned in phases:
        does = neutralise(f"{planned.kind} {planned.does}".strip())
        yield f"{'  ' * depth}{planned.phase.name}", does, planned
        yield from _rows(planned.inside, depth + 1)


def _notes(planned: PlannedPhase) -> Iterator[str]:
    phase = planned.phase
    if phase.depends_on:
        rule = "" if phase.trigger_rule is TriggerRule.ALL_SUCCESS else f" ({phase.trigger_rule})"
        yield f"after {', '.join(phase.depends_on)}{rule}"
    if phase.when is not None:
        value = {True: "true", False: "false: it is skipped", None: "decided during the run"}
        said = planned.problem or value[planned.holds]
        yield f"when {one_line(phase.when)}: {one_line(said)}"
    if phase.for_each is not None:
        many = "known during the run" if planned.count is None else counted(planned.count, "item")
        yield f"for each of {one_line(phase.for_each.items)}: {many}"
    if phase.loop is not None:
        yield f"at most {counted(phase.loop.max_iterations, 'iteration')}"
