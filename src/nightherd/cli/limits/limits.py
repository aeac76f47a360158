"""`nightherd limits`: what may be used, what has been, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, complete_agents, json_option
from nightherd.cli.jobs.command import find_agent
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import Screen, table
from nightherd.engine.limits.guard import job_limits, limits_for
from nightherd.errors import NightherdError
from nightherd.model.checkpoints.state_schema import descriptions
from nightherd.model.jobs.options import NO_OPTIONS
from nightherd.model.limits.limits import Limits, shown
from nightherd.views.costs.limits import LimitView, limit_row, limits_of_agent, limits_of_fleet
from nightherd.views.jobs.document import JobView
from nightherd.wiring.stores import load_persistence, open_reader, system_clock

HEADING = ("WHOSE", "LIMIT", "MAXIMUM", "USED", "LEFT", "AT THE LIMIT", "WHAT IT LIMITS")


@click.group(
    "limits",
    cls=LazyGroup,
    entries={
        "show": Entry(
            "nightherd.cli.limits.limits:show", "Show limits, what is used and what is left."
        ),
    },
    default="show",
    epilog="Example: nightherd limits show hello",
)
def limits() -> None:
    """Show limits, what is used and what is left."""


@click.command("show", epilog="Example: nightherd limits show --json")
@click.argument("agent", metavar="[AGENT]", required=False, shell_complete=complete_agents)
@json_option
@click.pass_obj
def show(invocation: Invocation, agent: str | None) -> None:
    """Show limits, what is used and what is left. Without AGENT, shows the fleet and all its agents."""
    screen, now = invocation.screen, system_clock().now()
    fleet = load_fleet_with_notices(invocation, agent=agent)
    chosen = list(fleet.agents.values()) if agent is None else [find_agent(fleet, agent)]
    state = invocation.state_directory()
    with closing(open_reader(state)) as reader:
        found = list(limits_of_fleet(fleet, reader, now))
        for one in chosen:
            found += limits_of_agent(one, job_limits(one, NO_OPTIONS), reader, now)
    if screen.is_json:
        screen.document("limits", [limit_row(one) for one in found], now)
        return
    if not found:
        screen.say("there are no limits")
        screen.say(
            "  try: limits: {spend: 1.00} in the fleet file, or nightherd run AGENT --limit spend=1"
        )
        return
    words = dict(descriptions(load_persistence(state).schema))
    show_limits(found, words, screen)


def show_limits(found: Sequence[LimitView], words: dict[str, str], screen: Screen) -> None:
    """The limits as a table; `words` say what each is."""
    rows = [
        (
            f"{one.scope.value} {one.owner}".strip(),
            one.name.value + (" a day" if one.is_day else ""),
            shown(one.name, one.maximum),
            "-" if one.used is None else shown(one.name, one.used),
            "-" if one.left is None else shown(one.name, one.left),
            one.outcome,
            words.get(f"limits.{one.name.value}", ""),
        )
        for one in found
    ]
    screen.show(table(HEADING, rows, width=screen.width, style=screen.out))


def declared_limits(invocation: Invocation, view: JobView) -> Limits | None:
    """What the job may use that begins now; None when its agent is not to be found."""
    try:
        fleet = load_fleet_with_notices(invocation, is_quiet=True)
    except NightherdError:
        return None  # commands that need the fleet file report a missing or wrong one
    agent = fleet.agents.get(view.job.agent)
    if agent is None or view.texts is None:
        return None
    return limits_for(view.job, view.texts.overrides, agent)
