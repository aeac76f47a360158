"""Options and arguments that commands share, and completion of ids and names: quick, silent when anything is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nightherd.cli.invocation import Invocation
from nightherd.cli.screen.render import Screen
from nightherd.errors import InvalidValueError
from nightherd.model.units import parse_duration
from nightherd.views.jobs import LAST, LAST_FAILED
from nightherd.wiring.stores import open_job_list, open_reader

if TYPE_CHECKING:
    from nightherd.model.agents.agent import Agent

MOST = 20


def complete_jobs(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The newest job ids that begin so, and the two that need no id."""
    words = [word for word in (LAST, LAST_FAILED) if word.startswith(incomplete)]
    if words and incomplete:
        return words
    try:
        with closing(open_job_list(_invocation(ctx).state_directory())) as reader:
            return [*reader.job_ids(incomplete or "job-", MOST), *words]
    except Exception:  # noqa: BLE001 (an edge: a prompt that is being typed is no place for an error)
        return words


def complete_sessions(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The newest session ids that begin so, and the one that needs no id."""
    words = [word for word in (LAST,) if word.startswith(incomplete)]
    if words and incomplete:
        return words
    try:
        with closing(open_reader(_invocation(ctx).state_directory())) as reader:
            return [*reader.session_ids(incomplete or "sess-", MOST), *words]
    except Exception:  # noqa: BLE001 (an edge, as above)
        return words


def complete_agents(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The names of the fleet's agents that begin so."""
    return [name for name in _agents(ctx) if name.startswith(incomplete)]


def complete_schedules(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The fleet's schedules that begin so, as AGENT/NAME."""
    agents = _agents(ctx).values()
    names = [f"{agent.name}/{name}" for agent in agents for name in agent.schedules]
    return [name for name in names if name.startswith(incomplete)]


def _agents(ctx: click.Context) -> Mapping[str, Agent]:
    """The agents of the fleet; none when it cannot be loaded."""
    from nightherd.wiring.fleets import load_fleet

    try:
        invocation = _invocation(ctx)
        loaded = load_fleet(invocation.fleet_file(), environ=invocation.environ, cwd=invocation.cwd)
    except Exception:  # noqa: BLE001 (an edge, as above)
        return {}
    return loaded.fleet.agents


def _invocation(ctx: click.Context) -> Invocation:
    """What the line so far says: completion parses it without running the commands."""
    given = ctx.find_root().params
    screen = Screen(StringIO(), StringIO(), {})
    return Invocation(
        screen=screen,
        environ=os.environ,
        cwd=Path.cwd(),
        config=given.get("config"),
        state=given.get("state_dir"),
    )


Command = TypeVar("Command", bound=Callable[..., Any])


def _choose_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    invocation = ctx.find_object(Invocation)
    if value and invocation is not None:
        invocation.screen.is_json = True


def json_option(command: Command) -> Command:
    """`--json`: switch the screen to JSON, also for errors."""
    return click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_choose_json,
        help="Print one JSON document on standard output.",
    )(command)


agent_filter = click.option(
    "--agent", metavar="AGENT", shell_complete=complete_agents, help="Show only this agent."
)
"""`--agent` of a list."""
before_option = click.option(
    "--before",
    type=click.IntRange(1),
    metavar="CURSOR",
    help="Cursor of the next page, as the list prints it.",
)


def page_option(default: int, most: int = 1_000) -> Callable[[Command], Command]:
    """`--limit` of a list."""
    text = f"Largest number to show (default: {default})."
    return click.option("--limit", type=click.IntRange(1, most), default=default, help=text)


def status_option(statuses: Iterable[str], noun: str) -> Callable[[Command], Command]:
    """`--status` of a list."""
    return click.option(
        "--status",
        type=click.Choice([str(status) for status in statuses]),
        help=f"Show only {noun} with this status.",
    )


def job_argument(command: Command) -> Command:
    """A job: its id, a unique prefix of it, `@last` or `@last-failed`."""
    return click.argument("job", metavar="JOB", shell_complete=complete_jobs)(command)


class Duration(click.ParamType[timedelta]):
    """A time as people write it: 90s, 30m, 2h."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The time, more than none."""
        if isinstance(value, timedelta):
            return value
        try:
            span = parse_duration(str(value))
        except InvalidValueError as error:
            self.fail(error.message, param, ctx)
        if span <= timedelta(0):
            self.fail(f"{value!r} must be greater than 0", param, ctx)
        return span


DURATION = Duration()
