"""`nightherd workflow enable`, `disable` and `reset`: switching workflows on and off beside their files."""

from __future__ import annotations

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Command, Invocation, json_option
from nightherd.cli.runs.actions import perform
from nightherd.cli.runs.list import complete_workflows
from nightherd.cli.workflows.declared import read_switches
from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.run_requests import SetWorkflow
from nightherd.engine.operations.runs import set_workflow
from nightherd.views.workflows.workflows import switch_row
from nightherd.wiring.machine import refuse_agents, user_name
from nightherd.wiring.stores import system_clock


def workflow_argument(command: Command) -> Command:
    """A workflow of the fleet, by name."""
    return click.argument("name", metavar="NAME", shell_complete=complete_workflows)(command)


@click.command("enable", epilog="Example: nightherd workflow enable build")
@workflow_argument
@json_option
@click.pass_obj
def enable(invocation: Invocation, name: str) -> None:
    """Enable a workflow. It starts runs again, also when its file is changed later."""
    refuse_agents(invocation.new_state_directory(), "enabling a workflow")
    _switch(invocation, name, enabled=True)


@click.command("disable", epilog="Example: nightherd workflow disable build")
@workflow_argument
@json_option
@click.pass_obj
def disable(invocation: Invocation, name: str) -> None:
    """Disable a workflow. It starts no more runs; those that are open continue."""
    _switch(invocation, name, enabled=False)


@click.command("reset", epilog="Example: nightherd workflow reset build")
@workflow_argument
@json_option
@click.pass_obj
def reset(invocation: Invocation, name: str) -> None:
    """Remove the switch of a workflow. Its file decides again."""
    refuse_agents(invocation.new_state_directory(), "enabling a workflow")
    _switch(invocation, name, enabled=None)


def _switch(invocation: Invocation, name: str, *, enabled: bool | None) -> None:
    fleet = load_fleet_with_notices(invocation, is_run=True, accepts=False)
    request = SetWorkflow(workflow=name, by=user_name(), enabled=enabled)

    async def operation(context: FleetContext) -> None:
        await set_workflow(request, context)

    perform(invocation, fleet, operation)
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        data = {"workflow": name, **switch_row(read_switches(invocation).get(name))}
        screen.document("workflow_switch", data, now)
        return
    words = {True: "enabled", False: "disabled", None: "reset"}
    screen.show(f"{words[enabled]} {name}")
