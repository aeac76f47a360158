"""`nightherd runs show`: one run with its phases, what it waits for, and the outputs of its phases."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import click

from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.next_steps import command_for
from nightherd.cli.runs.draw import draw_nodes
from nightherd.cli.runs.list import WAITED, run_argument, trigger_text
from nightherd.cli.screen.render import Screen, length, neutralise, one_line
from nightherd.errors import ConfigError
from nightherd.model.limits.limits import shown
from nightherd.model.text import input_text
from nightherd.model.units import format_usd
from nightherd.model.workflows.run import RunStatus
from nightherd.views.runs.document import RunView, run_document, show_run
from nightherd.views.runs.outputs import output_of
from nightherd.views.runs.runs import find_run, find_run_id, took
from nightherd.views.runs.waits import Wait
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_reader, system_clock

INPUT_LIMIT = 200
PLAIN_WAITS = ("a worker", "its time")
"""What is waited for, where there is no more to say about it."""


@click.command("show", epilog="Example: nightherd runs show @last --output plan")
@run_argument
@click.option("--all", "is_all", is_flag=True, help="Show every item and iteration.")
@click.option(
    "--output",
    "phase",
    metavar="PHASE",
    help="Print the output of this phase, such as plan, each[0] or fix_loop[2]/review.",
)
@json_option
@click.pass_obj
def show(invocation: Invocation, run: str, is_all: bool, phase: str | None) -> None:
    """Show a run. Draws its phases with their states, times and costs, and says what it waits for."""
    screen, now = invocation.screen, system_clock().now()
    with closing(open_reader(invocation.state_directory())) as reader:
        run_id = find_run_id(reader, run)
        if phase is not None:
            _show_output(output_of(reader, find_run(reader, run_id), phase), screen, phase, now)
            return
        is_over = find_run(reader, run_id).is_terminal
        agents = None if is_over else _declared_agents(invocation)
        view = show_run(reader, run_id, now, is_at_work, agents)
    if screen.is_json:
        screen.document("workflow_run", run_document(view, now, spell=command_for), now)
        return
    screen.show(run_card(view, screen, now, is_all=is_all))
    screen.flush()
    if not view.run.is_terminal:
        screen.say(f"events: nightherd runs tail {run_id} -f")
    elif view.run.status is not RunStatus.SUCCEEDED and view.run.definition_hash:
        screen.say(f"run what is left: nightherd runs retry {run_id}")


def _declared_agents(invocation: Invocation) -> Collection[str] | None:
    """The agents of the fleet; None where its file cannot be read, which is no reason not to show a run."""
    from nightherd.cli.fleet.load import load_all

    try:
        return load_all(invocation).fleet.agents
    except ConfigError:
        return None


def _show_output(value: Any, screen: Screen, phase: str, now: datetime) -> None:
    if screen.is_json:
        screen.document("workflow_output", {"phase": phase, "output": value}, now)
    elif isinstance(value, str):
        screen.show(neutralise(value))
    else:
        screen.show(neutralise(json.dumps(value, indent=2, ensure_ascii=False)))


def run_card(view: RunView, screen: Screen, now: datetime, *, is_all: bool = False) -> str:
    """Everything about one run, as lines of `label  value` and its phases below."""
    run, style = view.run, screen.out
    pairs = [
        ("run", style.bold(run.id)),
        ("workflow", neutralise(run.workflow_name)),
        ("status", style.status(run.status.value) + (" (stopping)" if _is_stopping(view) else "")),
        ("trigger", one_line(trigger_text(run))),
        ("started", screen.when(run.started_at, now)),
        ("finished", screen.when(run.finished_at, now)),
        ("took", f"{length(took(run, now))}, worked {_worked(view)}"),
        ("cost", format_usd(view.cost)),
    ]
    if run.attempt > 1:
        pairs.append(("attempt", str(run.attempt)))
    pairs += [
        (one.name.value, f"{shown(one.name, one.used)} of {shown(one.name, one.maximum)}")
        for one in view.limits
    ]
    if run.error or run.stopping:
        pairs.append(("error", style.bad(one_line(run.error or run.stopping or ""))))
    pairs += [
        ("input", f"{one_line(name)}={one_line(input_text(value), INPUT_LIMIT)}")
        for name, value in view.inputs.items()
        if value is not None
    ]
    pairs += [("run below", child.id) for child in view.children]
    if run.status is RunStatus.QUEUED:
        pairs.append(("waits", "for another run of its workflow to end"))
    for node, wait in view.waits:
        pairs.append(("waits", f"{node.path}: {wait_text(wait, screen)}"))
        answer = wait.advice.text(command_for)
        pairs += [("", answer)] if answer is not None else []
    lines = [f"{label:<10}{value}".rstrip() for label, value in pairs]
    drawn = draw_nodes(view.nodes, screen, is_all=is_all)
    return "\n".join([*lines, "", *drawn]) if drawn else "\n".join(lines)


def wait_text(wait: Wait, screen: Screen) -> str:
    """What is waited for, and until when."""
    until = f", until {screen.time(wait.until)}" if wait.until is not None else ""
    text = one_line(wait.text)
    if wait.kind != "event" and text not in PLAIN_WAITS:
        text = f"{WAITED[wait.kind]}: {text}"
    return f"waits for {text}{until}"


def _worked(view: RunView) -> str:
    return length(timedelta(milliseconds=view.run.worked_ms))


def _is_stopping(view: RunView) -> bool:
    return view.run.stopping is not None and not view.run.is_terminal
