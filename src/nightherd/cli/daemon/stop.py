"""`nightherd stop`, `restart` and `reload`: control the daemon."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import click

from nightherd.cli.daemon.start import launch, tell_started
from nightherd.cli.fleet.acceptance import refuse_agents
from nightherd.cli.fleet.load import load_fleet_to_start, load_fleet_with_notices, tell_missing
from nightherd.cli.invocation import Invocation
from nightherd.cli.next_steps import ACCEPT
from nightherd.cli.options import DURATION, json_option
from nightherd.cli.screen.render import Screen
from nightherd.cli.screen.text import neutralise
from nightherd.config.acceptance import admit
from nightherd.daemon.control import (
    daemon_row,
    get_daemon,
    problem_line,
    send,
    wait_for_end,
    wait_until,
)
from nightherd.daemon.record import DaemonRecord, find_daemon
from nightherd.errors import ConfigError, NoDaemonError, NotYetError
from nightherd.model.text import counted
from nightherd.wiring.stores import system_clock

RELOAD_S = 60.0
QUIET_S = 1.0

now_option = click.option(
    "--now", is_flag=True, help="Cancel running jobs instead of finishing them."
)
timeout_option = click.option(
    "--timeout",
    type=DURATION,
    metavar="TIME",
    help="Longest time to wait for the end; by default no limit.",
)


@click.command("stop", epilog="Example: nightherd stop --now")
@now_option
@timeout_option
@json_option
@click.pass_obj
def stop(invocation: Invocation, now: bool, timeout: timedelta | None) -> None:
    """Stop the daemon after its jobs have finished."""
    state_dir = invocation.new_state_directory()
    record = get_daemon(state_dir)
    _end(invocation.screen, state_dir, record, is_now=now, timeout=timeout)
    screen, at = invocation.screen, system_clock().now()
    if screen.is_json:
        screen.document("daemon", daemon_row(record, at), at)
        return
    screen.show(f"process {record.pid} has ended")


@click.command("restart", epilog="Example: nightherd restart")
@now_option
@timeout_option
@json_option
@click.pass_obj
def restart(invocation: Invocation, now: bool, timeout: timedelta | None) -> None:
    """Restart the daemon in the background. It keeps running if the fleet file has errors."""
    fleet = load_fleet_to_start(invocation)
    state_dir = invocation.new_state_directory()
    record = find_daemon(state_dir)
    if record is not None:
        _end(invocation.screen, state_dir, record, is_now=now, timeout=timeout)
    agents = tuple(record.agents or ()) if record is not None else ()
    started = launch(invocation, agents)
    tell_missing(invocation, fleet, agents)
    tell_started(invocation.screen, started)


@click.command("reload", epilog="Example: nightherd reload --accept")
@click.option("--accept", is_flag=True, help="Accept all permissions that the files give agents.")
@json_option
@click.pass_obj
def reload(invocation: Invocation, accept: bool) -> None:
    """Reload the fleet's files. If they have errors, the daemon keeps its configuration.

    A change that gives agents more permissions takes effect only after you accept it. --accept also works
    without a daemon; agents cannot use it.
    """
    state_dir = invocation.new_state_directory()
    if accept:
        _accept(invocation)
        if find_daemon(state_dir) is None:
            return
    before = get_daemon(state_dir)
    if not send(before, signal.SIGHUP):
        raise NoDaemonError(f"no daemon runs {state_dir}", hint="nightherd start")

    def is_done() -> bool:
        found = find_daemon(state_dir)
        return found is None or _marks(found) != _marks(before)

    if not wait_until(is_done, RELOAD_S):
        raise NotYetError(f"process {before.pid} has not reloaded yet", hint="nightherd status")
    record = get_daemon(state_dir)
    screen, at = invocation.screen, system_clock().now()
    if record.problems:
        if not screen.is_json:
            for problem in record.problems:
                screen.say(neutralise(problem_line(problem)))
        raise ConfigError(
            f"{counted(len(record.problems), 'problem')} in the configuration; the old one stays",
            hint="nightherd config check",
        )
    if screen.is_json:
        screen.document("daemon", daemon_row(record, at), at)
        return
    screen.show(f"process {record.pid} has reloaded {record.config}")
    for text in record.pending:
        screen.say(neutralise(f"not in effect until a person accepts it: {text}"))
    if record.pending:
        screen.say(f"  try: {ACCEPT}")


def _accept(invocation: Invocation) -> None:
    """Record what the files give agents as accepted, and say what is new in it."""
    refuse_agents(invocation.new_state_directory(), ACCEPT)
    fleet = load_fleet_with_notices(invocation)
    state_dir, at = invocation.new_state_directory(), system_clock().now()
    admission = admit(fleet, state_dir, at=at, is_accepted=True)
    screen, running = invocation.screen, find_daemon(state_dir)
    texts = [one.text for one in admission.accepted]
    if screen.is_json and running is None:
        screen.document("acceptance", {"accepted": texts}, at)
        return
    for text in texts:
        screen.say(neutralise(f"accepted: {text}"))
    if running is None and not screen.is_json:
        screen.show(f"accepted {fleet.file}")


def _has_heard(state_dir: Path, record: DaemonRecord) -> bool:
    found = find_daemon(state_dir)
    return found is None or found.pid != record.pid or found.is_draining


def _marks(record: DaemonRecord) -> tuple[object, ...]:
    return (record.loaded_at, record.failed_at)


def _end(
    screen: Screen,
    state_dir: Path,
    record: DaemonRecord,
    *,
    is_now: bool,
    timeout: timedelta | None,
) -> None:
    if not record.is_draining:
        send(record, signal.SIGTERM)
    if is_now:
        # Two signals at once may be heard as one: the second is sent when the first had its effect.
        wait_until(lambda: _has_heard(state_dir, record), RELOAD_S)
        send(record, signal.SIGTERM)
    limit_s = None if timeout is None else timeout.total_seconds()
    if not wait_for_end(record, min(QUIET_S, limit_s if limit_s is not None else QUIET_S)):
        if not is_now:
            screen.say("it finishes its running jobs; nightherd stop --now cancels them")
        if not wait_for_end(record, limit_s):
            raise NotYetError(
                f"process {record.pid} has not ended yet", hint="nightherd stop --now"
            )
