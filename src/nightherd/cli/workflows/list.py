"""`nightherd workflow list` and `workflow show`: the workflows that the fleet's files declare."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from nightherd.cli.fleet.load import load_all
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.screen.render import Screen, neutralise, one_line, table
from nightherd.cli.workflows.declared import find_workflow, name_argument, read_switches
from nightherd.cli.workflows.graph import LONGEST, draw_phases
from nightherd.config.report import shown_file
from nightherd.model.limits.limits import LimitName, Limits
from nightherd.model.units import format_duration, format_usd
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.rows import WorkflowOverride
from nightherd.model.workflows.triggers import Concurrency, Triggers
from nightherd.views.workflows.workflows import switch_row, workflow_document, workflow_row
from nightherd.wiring.stores import system_clock

HEADING = ("WORKFLOW", "STATUS", "PHASES", "STARTED BY", "ABOUT")


@click.command("list", epilog="Example: nightherd workflow list --json")
@json_option
@click.pass_obj
def list_workflows(invocation: Invocation) -> None:
    """List workflows. Shows what the fleet's files declare, and which workflows are disabled."""
    screen = invocation.screen
    workflows, switches = load_all(invocation).fleet.workflows, read_switches(invocation)
    if screen.is_json:
        rows = [
            {**workflow_row(one), **switch_row(switches.get(name))}
            for name, one in workflows.items()
        ]
        screen.document("workflows", rows, system_clock().now())
        return
    if not workflows:
        screen.say("the fleet has no workflows; write one into workflows/NAME.yaml")
        return
    cells = [
        (
            name,
            _status(switches.get(name)),
            str(workflow_row(one)["phase_count"]),
            started_by(one.triggers) or "-",
            one_line(one.description) or "-",
        )
        for name, one in workflows.items()
    ]
    screen.show(table(HEADING, cells, width=screen.width, style=screen.out, spare=("STARTED BY",)))


def _status(switch: WorkflowOverride | None) -> str:
    return "enabled" if switch is None or switch.enabled else "disabled"


def started_by(triggers: Triggers) -> str:
    """What starts runs, in a few words."""
    words = [f"schedule {name}" for name in triggers.schedules]
    words += [f"webhook {name}" for name in triggers.webhooks]
    words += ["chat"] if triggers.chat is not None else []
    return ", ".join([*words, "api"] if triggers.api else words)


@click.command("show", epilog="Example: nightherd workflow show build")
@name_argument
@json_option
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show a workflow. Prints its inputs, what starts it, its limits and its phases."""
    screen = invocation.screen
    found = find_workflow(invocation, name)
    spot = found.node.spot
    file = shown_file(spot.source.path, invocation.cwd)
    switch = read_switches(invocation).get(found.definition.name)
    if screen.is_json:
        data = {
            **workflow_document(found.definition),
            **switch_row(switch),
            "file": file,
            "line": spot.line,
        }
        screen.document("workflow", data, system_clock().now())
        return
    pairs = [
        ("workflow", screen.out.bold(found.definition.name)),
        ("file", f"{file}:{spot.line}"),
        ("status", _status(switch) + _switched(switch, screen)),
        *_card(found.definition),
    ]
    for label, text in pairs:
        screen.show(f"{label.ljust(11)} {text}")
    _show_phases(found.definition, screen)


def _switched(switch: WorkflowOverride | None, screen: Screen) -> str:
    if switch is None:
        return ""
    by = f" by {one_line(switch.updated_by)}" if switch.updated_by else ""
    return f"{by}, {screen.time(switch.updated_at)}"


def _show_phases(definition: WorkflowDefinition, screen: Screen) -> None:
    screen.show("")
    for line in draw_phases(definition):
        screen.show(line)


def _card(definition: WorkflowDefinition) -> Iterator[tuple[str, str]]:
    if definition.description:
        yield "about", one_line(definition.description)
    for name, spec in definition.inputs.items():
        need = "required" if spec.required else "optional"
        if spec.default is not None:
            need = f"default {one_line(json.dumps(spec.default, ensure_ascii=False), LONGEST)}"
        about = f": {one_line(spec.description)}" if spec.description else ""
        yield "input", neutralise(f"{name} ({spec.type.value}, {need}){about}")
    triggers = definition.triggers
    for name, schedule in triggers.schedules.items():
        rule = (
            f"every {format_duration(schedule.interval)}"
            if schedule.interval is not None
            else f"{schedule.cron} ({schedule.timezone})"
        )
        yield "schedule", f"{name}: {rule}"
    others = started_by(Triggers(webhooks=triggers.webhooks, chat=triggers.chat, api=triggers.api))
    if others:
        yield "started by", others
    limits = ", ".join(_limits(definition.limits))
    if limits:
        yield "limits", limits
    if definition.concurrency != Concurrency():
        yield "at once", _concurrency(definition.concurrency)
    if definition.working_directory is not None:
        policy = definition.workspace
        is_own = policy is not None and not policy.is_shared
        mode = (
            f" ({policy.mode.value}, one for each {policy.scope.value})"
            if policy and is_own
            else ""
        )
        yield "directory", neutralise(definition.working_directory) + mode


def _limits(limits: Limits) -> Iterator[str]:
    for name in LimitName:
        if limits.maximum(name) is None:
            continue
        match name:
            case LimitName.SPEND if limits.spend is not None:
                yield f"spend {format_usd(limits.spend)}"
            case LimitName.DURATION if limits.duration is not None:
                yield f"duration {format_duration(limits.duration)}"
            case _:
                yield f"{name.value} {limits.maximum(name)}"


def _concurrency(concurrency: Concurrency) -> str:
    count = "any number of runs" if concurrency.max_runs is None else f"{concurrency.max_runs} runs"
    key = f" for each {one_line(concurrency.key)}" if concurrency.key is not None else ""
    return f"{count}{key}, then {concurrency.when_busy.value}"
