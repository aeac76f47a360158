"""`nightherd stop`, `restart` and `reload`: launch the daemon in the background and control it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import anyio
import click

from nightherd.cli.fleet.load import (
    load_fleet_to_start,
    load_fleet_with_notices,
    warn_missing,
)
from nightherd.cli.invocation import DURATION, Invocation, json_option
from nightherd.cli.next_steps import ACCEPT
from nightherd.cli.screen.render import Screen, neutralise
from nightherd.daemon.control import (
    daemon_row,
    get_daemon,
    problem_line,
    send,
    wait_for_end,
    wait_until,
)
from nightherd.daemon.output import OUTPUT
from nightherd.daemon.record import SERVING, DaemonRecord, find_daemon
from nightherd.errors import (
    ConfigError,
    NightherdError,
    NoDaemonError,
    NotYetError,
    RefusedError,
    StateError,
)
from nightherd.model.text import counted
from nightherd.wiring.machine import refuse_agents
from nightherd.wiring.reloads import admit_answered, ask_about, held_by
from nightherd.wiring.stores import init_state_directory, system_clock

RELOAD_S = 60.0
QUIET_S = 1.0
PATIENCE_S = 60.0
SAID, TRY = "nightherd:", "  try:"
"""How the lines begin that say why a command failed, and what to do."""
ENDS = (RefusedError, ConfigError, StateError)
"""What a fleet that could not start ends with."""

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
    warn_missing(invocation, fleet, agents)
    show_started(invocation.screen, started)


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
        daemon = find_daemon(state_dir)
        return daemon is None or _marks(daemon) != _marks(before)

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


def check_free(state_dir: Path, screen: Screen) -> None:
    """Raise `RefusedError` if a daemon already runs the state directory."""
    running = find_daemon(state_dir)
    if running is not None:
        raise RefusedError(
            f"a daemon already runs {state_dir}: process {running.pid}, since {screen.time(running.started_at)}",
            hint="nightherd status, nightherd restart or nightherd stop",
        )


def launch(invocation: Invocation, agents: tuple[str, ...]) -> DaemonRecord:
    """Start it in a session of its own; its record once it works. What it says goes to a file."""
    state_dir = invocation.new_state_directory()
    check_free(state_dir, invocation.screen)
    output = init_state_directory(state_dir).logs / OUTPUT
    # -P: a file that an agent leaves in the directory is never taken for a module.
    command = [sys.executable, "-P", "-m", "nightherd", "--config", str(invocation.fleet_file())]
    command += ["--state-dir", str(state_dir), "start"]
    command += [part for name in agents for part in ("--agent", name)]
    begin = output.stat().st_size if output.exists() else 0
    handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        child = subprocess.Popen(
            command,
            cwd=invocation.fleet_file().parent,
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            start_new_session=True,
            env=dict(invocation.environ),
        )
    finally:
        os.close(handle)

    def is_settled() -> bool:
        found = find_daemon(state_dir)
        return child.poll() is not None or (found is not None and found.pid == child.pid)

    wait_until(is_settled, PATIENCE_S)
    record = find_daemon(state_dir)
    if record is None or record.pid != child.pid or child.poll() is not None:
        raise _failure(output, begin, child.poll())
    return record


def _failure(output: Path, begin: int, code: int | None) -> NightherdError:
    """Return why the daemon did not start: the error that it ended with, or its last output."""
    with output.open("rb") as file:
        file.seek(begin)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    why = next((line for line in lines if line.startswith(SAID)), "".join(lines[-1:]))
    hint = next((line for line in lines if line.startswith(TRY)), "")
    kind = next((one for one in ENDS if one.exit_code == code), NightherdError)
    text = why.removeprefix(SAID).strip() or "it printed nothing"
    return kind(
        f"it did not start: {text}", hint=hint.removeprefix(TRY).strip() or f"less {output}"
    )


def show_started(screen: Screen, record: DaemonRecord) -> None:
    """The daemon that runs now."""
    now = system_clock().now()
    if screen.is_json:
        screen.document("daemon", daemon_row(record, now), now)
        return
    screen.show(str(record.pid))
    screen.flush()
    if record.socket is None:
        screen.say(f"the API is not served: {SERVING}")
    if record.address is not None:
        screen.say(f"dashboard: {record.address} (log in: nightherd open)")
    screen.say("watch: nightherd status")


def _accept(invocation: Invocation) -> None:
    """Record what the files give agents as accepted, and say what is new in it."""
    refuse_agents(invocation.new_state_directory(), ACCEPT)
    fleet = load_fleet_with_notices(invocation)
    state_dir, at = invocation.new_state_directory(), system_clock().now()
    admission = admit_answered(fleet, state_dir, at=at, is_accepted=True)
    anyio.run(ask_about, held_by(admission), state_dir)
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
    daemon = find_daemon(state_dir)
    return daemon is None or daemon.pid != record.pid or daemon.is_draining


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
