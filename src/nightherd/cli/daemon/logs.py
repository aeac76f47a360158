"""`nightherd logs`: what the fleet did, as its operators read it. Synchronous; reads files only."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from heapq import merge
from itertools import chain
from typing import TYPE_CHECKING

import click

from nightherd.cli.invocation import Invocation, complete_agents, json_option
from nightherd.cli.screen.render import Screen, one_line
from nightherd.errors import InvalidValueError, NotFoundError
from nightherd.model.log import LogLevel, LogLine
from nightherd.model.secrets import Secrets
from nightherd.model.units import parse_duration
from nightherd.views.health.logs import log_row
from nightherd.wiring.stores import open_log, system_clock

if TYPE_CHECKING:
    from nightherd.logs.files import LogTail

DEFAULT_COUNT = 50
LOOK_S = 0.25


@click.command("logs", epilog="Example: nightherd logs hello --since 1h -f")
@click.argument("agent", metavar="[AGENT]", required=False, shell_complete=complete_agents)
@click.option("-f", "--follow", is_flag=True, help="Follow new lines.")
@click.option(
    "-n", "count", type=click.IntRange(1), metavar="N",
    help=f"Number of lines to show (default: {DEFAULT_COUNT}; with --since: all).",
)  # fmt: skip
@click.option(
    "--since",
    metavar="WHEN",
    help="Time to start at: an age such as 2h, or a date and time (local unless it names a zone).",
)
@json_option
@click.pass_obj
def logs(
    invocation: Invocation, agent: str | None, follow: bool, count: int | None, since: str | None
) -> None:
    """Show nightherd's own log. It has a line for each start, end and failure; AGENT shows only that agent's jobs.

    --json prints one document per line.
    """
    screen = invocation.screen
    begin = None if since is None else _instant(since)
    files = open_log(invocation.state_directory(), Secrets({}, None))
    names = [agent] if agent is not None else files.names()
    if agent is not None and not follow and agent not in files.names():
        raise NotFoundError(f"nothing has been logged about {agent!r} yet", hint="nightherd logs")
    tails = {name: files.tail(name) for name in names} if follow else {}
    lines: Iterable[LogLine] = merge(
        files.read(names, is_followed=follow), _poll(tails), key=lambda line: line.at
    )
    if begin is not None:
        lines = (line for line in lines if line.at >= begin)
    if count is not None or begin is None:
        lines = deque(lines, maxlen=count or DEFAULT_COUNT)
    if not names and not follow and not screen.is_json:
        screen.say("nothing has been logged yet")
    _show_all(lines, screen)
    while follow:
        time.sleep(LOOK_S)
        for name in files.names() if agent is None else ():
            if name not in tails:
                tails[name] = files.tail(name)
        _show_all(_poll(tails), screen)


def _poll(tails: Mapping[str, LogTail]) -> list[LogLine]:
    """What has come in any of them, in order."""
    found = chain.from_iterable(tail.poll() for tail in tails.values())
    return sorted(found, key=lambda line: line.at)


def _show_all(lines: Iterable[LogLine], screen: Screen) -> None:
    for line in lines:
        _show(line, screen)
    screen.flush()


def _instant(text: str) -> datetime:
    now = system_clock().now()
    try:
        return now - parse_duration(text)
    except InvalidValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValueError(
            f"{text!r} is neither an age such as 2h nor a date and time such as 2026-11-15T03:00Z"
        ) from None
    return at if at.tzinfo is not None else at.astimezone()


def _show(line: LogLine, screen: Screen) -> None:
    if screen.is_json:
        screen.document("log", log_row(line), system_clock().now())
        return
    screen.show(line_text(line, screen))


def line_text(line: LogLine, screen: Screen) -> str:
    """Return a line for people: time, subject, message, and the other fields dimmed."""
    style = screen.out
    event = style.bold(line.event)
    if line.level is LogLevel.ERROR:
        event = style.bad(line.event)
    about = [part for part in (line.agent, line.job) if part is not None]
    said = [one_line(line.message)] if line.message else []
    data = [style.dim(one_line(f"{key}={value}")) for key, value in line.data.items()]
    return " ".join([style.dim(screen.time(line.at)), event, *about, *said, *data])
