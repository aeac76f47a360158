"""`nightherd schedule run`, `enable`, `disable`, `set` and `reset`: what can be done about a schedule."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import click

from nightherd.cli.fleet.load import admitted, load_fleet_with_notices
from nightherd.cli.inbox.answer import person
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.jobs.command import show_launch
from nightherd.cli.operations import open_client
from nightherd.cli.schedules.list import schedule_argument, show_schedule
from nightherd.engine.operations.requests import RunSchedule, SetSchedule
from nightherd.model.schedules.jobs import find_schedule
from nightherd.wiring.stores import open_reader


def _command(name: str, *more: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make the function a command about one schedule; the example also shows the `more` arguments."""
    example = " ".join(["Example: nightherd schedule", name, "hello/nightly", *more])

    def decorate(function: Callable[..., None]) -> click.Command:
        with_options = schedule_argument(json_option(click.pass_obj(function)))
        return click.command(name, epilog=example)(with_options)

    return decorate


@_command("run")
def run(invocation: Invocation, schedule: str) -> None:
    """Submit a schedule's job now. A worker runs it; the schedule's own due times are not affected."""
    declared = load_fleet_with_notices(invocation)
    agent, chosen = find_schedule(declared.scheduled, schedule)
    fleet = admitted(invocation, declared, agent=agent.name)
    request = RunSchedule(agent=agent.name, schedule=chosen.name, refuses_held=True)
    show_launch(open_client(invocation, fleet).perform(request), invocation)


@_command("enable")
def enable(invocation: Invocation, schedule: str) -> None:
    """Enable a schedule. Overrides the fleet file, and restarts a schedule that paused itself."""
    _override(invocation, schedule, enabled=True)


@_command("disable")
def disable(invocation: Invocation, schedule: str) -> None:
    """Disable a schedule. Overrides the fleet file; a running job of the schedule continues."""
    _override(invocation, schedule, enabled=False)


@_command("set", "'0 3 * * *'")
@click.argument("rule", metavar="EXPR")
def set_rule(invocation: Invocation, schedule: str, rule: str) -> None:
    """Change a schedule's rule. EXPR is an interval such as 30m, or a cron expression."""
    _override(invocation, schedule, rule=rule)


@_command("reset")
def reset(invocation: Invocation, schedule: str) -> None:
    """Undo changes to a schedule. Removes what enable, disable and set did; the fleet file decides again."""
    _override(invocation, schedule, reset=True)


def _override(invocation: Invocation, reference: str, **said: Any) -> None:
    fleet = load_fleet_with_notices(invocation)
    agent, schedule = find_schedule(fleet.scheduled, reference)
    request = SetSchedule(agent=agent.name, schedule=schedule.name, by=_who(invocation), **said)
    open_client(invocation, fleet).perform(request)
    show_schedule(invocation, agent, schedule)


def _who(invocation: Invocation) -> str:
    """Return who changes the schedule: the name of the token that is shown, else of the user on this machine."""
    with closing(open_reader(invocation.new_state_directory())) as reader:
        return person(invocation, reader)
