"""`nightherd schedule run`, `enable`, `disable`, `set` and `reset`: what can be done about a schedule."""

from __future__ import annotations

import os
from typing import Any

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.gateway.direct import Override
from nightherd.cli.gateway.gateway import open_gateway
from nightherd.cli.invocation import Invocation
from nightherd.cli.jobs.command import tell_launch
from nightherd.cli.options import json_option
from nightherd.cli.schedules.list import schedule_argument, tell_schedule
from nightherd.model.schedules.due import parse_rule
from nightherd.model.schedules.jobs import find_schedule
from nightherd.wiring.runtimes import check_runtime


@click.command("run", epilog="Example: nightherd schedule run hello/nightly")
@schedule_argument
@json_option
@click.pass_obj
def run(invocation: Invocation, schedule: str) -> None:
    """A job of the schedule, now. It waits for a worker; no slot of the schedule is used up."""
    fleet = load_fleet_with_notices(invocation)
    agent, chosen = find_schedule(fleet.agents, schedule)
    check_runtime(agent.runtime)
    tell_launch(open_gateway(invocation, fleet).run_schedule(agent, chosen), invocation)


@click.command("enable", epilog="Example: nightherd schedule enable hello/nightly")
@schedule_argument
@json_option
@click.pass_obj
def enable(invocation: Invocation, schedule: str) -> None:
    """Let a schedule fire, whatever the fleet file says; one that paused itself begins anew."""
    _override(invocation, schedule, enabled=True)


@click.command("disable", epilog="Example: nightherd schedule disable hello/nightly")
@schedule_argument
@json_option
@click.pass_obj
def disable(invocation: Invocation, schedule: str) -> None:
    """Let a schedule rest, whatever the fleet file says. A job of it that runs goes on."""
    _override(invocation, schedule, enabled=False)


@click.command("set", epilog="Example: nightherd schedule set hello/nightly '0 3 * * *'")
@schedule_argument
@click.argument("rule", metavar="EXPR")
@json_option
@click.pass_obj
def set_rule(invocation: Invocation, schedule: str, rule: str) -> None:
    """Give a schedule another rule: an interval such as 30m, or a cron expression."""
    _override(invocation, schedule, rule=rule)


@click.command("reset", epilog="Example: nightherd schedule reset hello/nightly")
@schedule_argument
@json_option
@click.pass_obj
def reset(invocation: Invocation, schedule: str) -> None:
    """Take away what was set: the schedule is as the fleet file says again."""
    _override(invocation, schedule, reset=True)


def _override(invocation: Invocation, reference: str, **said: Any) -> None:
    fleet = load_fleet_with_notices(invocation)
    agent, schedule = find_schedule(fleet.agents, reference)
    if "rule" in said:
        said["rule"] = said["rule"].strip()
        parse_rule(said["rule"], schedule.timezone)
    override = Override(by=_who(invocation), **said)
    open_gateway(invocation, fleet).override(agent, schedule, override)
    tell_schedule(invocation, agent, schedule)


def _who(invocation: Invocation) -> str:
    environ = invocation.environ
    return environ.get("USER") or environ.get("LOGNAME") or f"user {os.getuid()}"
