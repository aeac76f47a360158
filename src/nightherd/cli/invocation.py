"""Invocation: what one call of the command was given; options and arguments that commands share, and their completion."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from nightherd.cli.screen.render import Screen
from nightherd.config.discovery import STATE_DIRECTORY, find_fleet_file
from nightherd.errors import ConfigNotFoundError, InvalidValueError, NotFoundError, UsageError
from nightherd.wiring.stores import open_job_list, open_reader

if TYPE_CHECKING:
    from nightherd.model.agents.agent import Agent


class Invocation(NamedTuple):
    """The global options, the environment and the screen of one call."""

    screen: Screen
    environ: Mapping[str, str]
    cwd: Path
    config: Path | None = None
    state: Path | None = None

    def fleet_file(self) -> Path:
        """The fleet file: the one named, else the nearest upward. `ConfigNotFoundError` without one."""
        if self.config is None:
            found = find_fleet_file(self.cwd)
            where = f"in {self.cwd} or above it"
        else:
            named = self.cwd / self.config
            if named.is_dir():
                found = find_fleet_file(named.resolve())
            else:
                # `..` is taken out, so that places read well; a file that is a link stays one.
                found = named.parent.resolve() / named.name
            where = f"at {self.config}"
        if found is None or not (found.exists() or found.is_symlink()):
            raise ConfigNotFoundError(f"there is no fleet file {where}", hint="nightherd init")
        return found

    @property
    def named_state(self) -> Path | None:
        """The state directory that was named, if one was."""
        return None if self.state is None else self.cwd / self.state

    def state_directory(self) -> Path:
        """The state directory, to look at: the one named, else the one beside the fleet file.

        One that was named has to be there, or a slip of the hand would read as a fleet that never worked.
        """
        found = self.new_state_directory()
        if self.state is not None and not found.is_dir():
            what = "is not a directory" if found.exists() else "does not exist"
            raise NotFoundError(
                f"the state directory {found} {what}",
                hint="check --state-dir and NIGHTHERD_STATE_DIR; nightherd run and nightherd start make it",
            )
        return found

    def new_state_directory(self) -> Path:
        """The same for those who make it where it is not there yet."""
        if self.named_state is not None:
            return self.named_state
        return self.fleet_file().parent / STATE_DIRECTORY


def invocation_of(ctx: click.Context) -> Invocation:
    """What this call was given, for a command that takes the context."""
    invocation = ctx.find_object(Invocation)
    assert invocation is not None  # noqa: S101 (the group above puts it there)
    return invocation


MOST = 20


def complete_jobs(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The newest job ids that begin so, and the two that need no id."""
    from nightherd.views.jobs.jobs import LAST, LAST_FAILED  # help needs none of it

    words = [word for word in (LAST, LAST_FAILED) if word.startswith(incomplete)]
    if words and incomplete:
        return words
    try:
        with closing(open_job_list(invocation_for_completion(ctx).state_directory())) as reader:
            return [*reader.job_ids(incomplete or "job-", MOST), *words]
    except Exception:  # noqa: BLE001 (an edge: a prompt that is being typed is no place for an error)
        return words


def complete_sessions(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The newest session ids that begin so, and the one that needs no id."""
    from nightherd.views.jobs.jobs import LAST

    words = [word for word in (LAST,) if word.startswith(incomplete)]
    if words and incomplete:
        return words
    try:
        with closing(open_reader(invocation_for_completion(ctx).state_directory())) as reader:
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
        invocation = invocation_for_completion(ctx)
        loaded = load_fleet(invocation.fleet_file(), environ=invocation.environ, cwd=invocation.cwd)
    except Exception:  # noqa: BLE001 (an edge, as above)
        return {}
    return loaded.fleet.agents


def invocation_for_completion(ctx: click.Context) -> Invocation:
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
query_argument = click.argument("words", nargs=-1, metavar="[QUERY]...")
"""Terms of a filter, such as `status:failed since:2d`; a shell needs quotes around `cost:>1`."""
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


watch_option = click.option(
    "--watch", "is_watched", is_flag=True, help="Refresh the list until you press Ctrl-C."
)
REFRESH_S = 2.0
"""Between two refreshes of `--watch`."""


def watch(screen: Screen, draw: Callable[[], str], *, command: str, json_hint: str) -> None:
    """Draw a list every two seconds until Ctrl-C, which ends the command without an error."""
    if screen.is_json:
        raise UsageError("--watch cannot be used with --json", hint=json_hint)
    if not screen.can_redraw:
        raise UsageError("--watch needs a terminal, and standard output is none", hint=command)
    drawn = 0
    with suppress(KeyboardInterrupt):
        while True:
            lines = draw().split("\n")[: screen.height - 1]
            screen.redraw(lines, drawn)
            drawn = len(lines)
            time.sleep(REFRESH_S)
    screen.show()


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
        from nightherd.model.units import parse_duration

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
