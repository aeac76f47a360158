"""Control a running daemon from another process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nightherd.daemon.fleet_files import Loading
from nightherd.daemon.record import DaemonRecord, find_daemon
from nightherd.errors import NoDaemonError
from nightherd.next_step import Action, NextStep
from nightherd.views.jobs.jobs import timestamp
from nightherd.wiring.machine import is_alive

if TYPE_CHECKING:
    from nightherd.views.fleet.status import ConfigErrorRow, DaemonRow

STEP_S = 0.05


def get_daemon(state_dir: Path) -> DaemonRecord:
    """Return the daemon of the directory; `NoDaemonError` when there is none."""
    record = find_daemon(state_dir)
    if record is None:
        raise NoDaemonError(f"no daemon runs {state_dir}", next_step=NextStep(Action.START_DAEMON))
    return record


def send(record: DaemonRecord, what: signal.Signals) -> bool:
    """Signal that very process; whether it was there."""
    if not is_alive(record.process):
        return False
    try:
        os.kill(record.pid, what)
    except ProcessLookupError:
        return False
    return True


def wait_until(is_so: Callable[[], bool], timeout_s: float | None) -> bool:
    """Whether it became so in that time."""
    waited = 0.0
    while not is_so():
        if timeout_s is not None and waited >= timeout_s:
            return False
        time.sleep(STEP_S)
        waited += STEP_S
    return True


def wait_for_end(record: DaemonRecord, timeout_s: float | None) -> bool:
    """Whether the process ended in that time."""
    return wait_until(lambda: not is_alive(record.process), timeout_s)


def daemon_row(record: DaemonRecord, now: datetime) -> DaemonRow:
    """Who runs the directory, since when, and whether a newer configuration could not be used."""
    return {
        "pid": record.pid,
        "host": record.host,
        "version": record.version,
        "started_at": timestamp(record.started_at),
        "uptime_seconds": max(round((now - record.started_at).total_seconds(), 3), 0.0),
        "is_draining": record.is_draining,
        "config": record.config,
        "agents": record.agents,
        "loaded_at": timestamp(record.loaded_at),
        "config_error": config_error(record),
        "pending": record.pending,
        "socket": record.socket,
        "ports": record.ports,
        "address": record.address,
    }


def config_error(record: DaemonRecord) -> ConfigErrorRow | None:
    """What is wrong with a newer configuration; None when the one in use is the newest."""
    if not record.problems:
        return None
    problems: list[Any] = record.problems
    return {"at": timestamp(record.failed_at), "problems": problems}


def admission_lines(loading: Loading) -> list[str]:
    """What took effect though no person had accepted it, and what waits for one; a line each."""
    taken = [f"accepted without a person: {text}" for text in loading.accepted]
    waiting = [f"not in effect until a person accepts it: {text}" for text in loading.pending]
    return [*taken, *waiting]


def problem_line(problem: dict[str, Any]) -> str:
    """A located problem on one line."""
    place = ":".join(str(problem.get(key, "")) for key in ("file", "line", "column"))
    return f"{place}: {problem.get('message', '')}"
