"""`nightherd agent`: the agents, where they stand, and forgetting an error."""

from __future__ import annotations

from contextlib import closing

import click

from nightherd.cli.daemon.status import agent_table, look
from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, complete_agents, json_option
from nightherd.cli.jobs.command import find_agent
from nightherd.cli.jobs.list import refresh_lost
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import Screen, neutralise, status_cell
from nightherd.engine.limits.guard import job_limits
from nightherd.model.jobs.lost import lost_text
from nightherd.model.jobs.options import NO_OPTIONS
from nightherd.model.schedules.rule import Cron
from nightherd.model.sessions.order import suspended_text
from nightherd.views.fleet.agents import AgentDocument, agent_document
from nightherd.views.fleet.fleet import AgentView, agent_row
from nightherd.views.schedules.schedules import list_views, schedule_row
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import known_secrets, open_reader, system_clock


@click.group(
    "agent",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.fleet.agent:list_agents", "List agents and their status."),
        "show": Entry("nightherd.cli.fleet.agent:show", "Show an agent."),
        "reset": Entry("nightherd.cli.fleet.agent:reset", "Clear an agent's error."),
        "resume": Entry(
            "nightherd.cli.sessions.actions:agent_resume", "Resume an agent's latest session."
        ),
    },
    default="list",
    epilog="Example: nightherd agent show hello",
)
def agent() -> None:
    """List, show, reset and resume agents."""


@click.command("list", epilog="Example: nightherd agent list --json")
@json_option
@click.pass_obj
def list_agents(invocation: Invocation) -> None:
    """List agents and their status. Includes agents that left the fleet file but have jobs."""
    screen, now = invocation.screen, system_clock().now()
    fleet = load_fleet_with_notices(invocation)
    view = look(invocation.state_directory(), fleet.agents)
    if screen.is_json:
        screen.document("agents", [agent_row(one) for one in view.agents], now)
        return
    if not view.agents:
        screen.say("the fleet has no agents")
        return
    screen.show(agent_table(view.agents, screen, now))


@click.command("show", epilog="Example: nightherd agent show hello")
@click.argument("agent", metavar="AGENT", shell_complete=complete_agents)
@json_option
@click.pass_obj
def show(invocation: Invocation, agent: str) -> None:
    """Show an agent. Prints its status and its schedules."""
    screen, now = invocation.screen, system_clock().now()
    view, row = _view(invocation, agent)
    refresh_lost(invocation, view.lost_jobs)
    if screen.is_json:
        screen.document("agent", row, now)
        return
    state = view.state
    lines = [
        ("agent", state.name),
        ("status", status_cell(state.status.value)),
        ("job", state.current_job or "-"),
        ("last job", state.last_job or "-"),
        ("waiting", str(view.waiting)),
        ("next", " ".join(filter(None, (state.next_schedule, _next_text(view, screen))))),
        ("runtime", row["runtime"] or "-"),
        ("about", state.error_message or row["description"] or "-"),
    ]
    lines += [("lost", lost_text(job, command_for)) for job in view.lost_jobs]
    lines += [
        ("suspended", f"{job.id} {suspended_text(job, screen.time, command_for)}")
        for job in view.suspended_jobs
    ]
    for label, text in lines:
        screen.show(f"{label.ljust(9)} {neutralise(str(text))}")
    for schedule in row["schedules"]:
        rule = schedule["rule"] or "by hand"
        screen.show(f"{'schedule'.ljust(10)}{schedule['name']}: {rule}, {schedule['status']}")


@click.command("reset", epilog="Example: nightherd agent reset hello")
@click.argument("agent", metavar="AGENT", shell_complete=complete_agents)
@json_option
@click.pass_obj
def reset(invocation: Invocation, agent: str) -> None:
    """Clear an agent's error. Its status is idle again."""
    from nightherd.cli.operations import open_client
    from nightherd.engine.operations.requests import ResetAgent

    fleet = load_fleet_with_notices(invocation)
    name = find_agent(fleet, agent).name
    open_client(invocation, fleet).perform(ResetAgent(agent=name))
    screen, now = invocation.screen, system_clock().now()
    view, row = _view(invocation, name)
    if screen.is_json:
        screen.document("agent", row, now)
        return
    screen.show(f"{name} is {view.state.status.value}")


def _next_text(view: AgentView, screen: Screen) -> str:
    """When the agent's next schedule is due, in the zone of its cron rule if it has one."""
    schedules = {} if view.declared is None else view.declared.schedules
    declared = schedules.get(view.state.next_schedule or "")
    rule = None if declared is None else declared.rule
    zone = rule.timezone if isinstance(rule, Cron) else None
    return screen.time(view.state.next_trigger_at, zone)


def _view(invocation: Invocation, name: str) -> tuple[AgentView, AgentDocument]:
    fleet, now = load_fleet_with_notices(invocation), system_clock().now()
    found = find_agent(fleet, name)
    state_dir = invocation.state_directory()
    fleet_view = look(state_dir, {found.name: found})
    view = next(one for one in fleet_view.agents if one.state.name == found.name)
    with closing(open_reader(state_dir)) as reader:
        schedules = [
            schedule_row(one)
            for one in list_views(reader, fleet, is_at_work, now)
            if one.agent is found
        ]
        limits = job_limits(found, NO_OPTIONS)
        secrets = known_secrets(fleet, invocation.environ, state_dir)
        return view, agent_document(reader, view, schedules, limits, secrets, now)
