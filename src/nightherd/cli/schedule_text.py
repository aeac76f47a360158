"""One schedule: how commands take its name, and how they show it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import click

from nightherd.cli.complete import complete_schedules
from nightherd.cli.invocation import Invocation
from nightherd.cli.schedule import tell_rest
from nightherd.cli.text import absolute, neutralise
from nightherd.host.liveness import is_at_work
from nightherd.model.agent import Agent
from nightherd.model.schedule_rule import Schedule, rule_text
from nightherd.views.schedules import ScheduleView, schedule_row, view_of
from nightherd.wiring.memories import open_reader, system_clock

Command = TypeVar("Command", bound=Callable[..., Any])


def schedule_argument(command: Command) -> Command:
    """A schedule: AGENT/NAME."""
    return click.argument("schedule", metavar="AGENT/NAME", shell_complete=complete_schedules)(
        command
    )


def load_view(invocation: Invocation, agent: Agent, schedule: Schedule) -> ScheduleView:
    """The schedule with everything on record about it."""
    with closing(open_reader(invocation.state_directory())) as reader:
        return view_of(reader, agent, schedule, is_at_work, system_clock().now())


def tell_schedule(invocation: Invocation, agent: Agent, schedule: Schedule) -> None:
    """Where the schedule stands now."""
    screen, now = invocation.screen, system_clock().now()
    view = load_view(invocation, agent, schedule)
    if screen.is_json:
        screen.document("schedule", schedule_row(view), now)
        return
    rule = rule_text(view.rule) or "by hand"
    coming = f", next {absolute(view.next_run_at)}" if view.next_run_at is not None else ""
    screen.show(neutralise(f"{view.id} is {view.state.status.value}: {rule}{coming}"))
    tell_rest(invocation)
