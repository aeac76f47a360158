"""Telling a running daemon what to do, from another process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from nightherd.daemon.record import DaemonRecord, find_daemon
from nightherd.errors import NoDaemonError
from nightherd.host.process import is_alive

STEP_S = 0.05


def get_daemon(state_dir: Path) -> DaemonRecord:
    """Who runs the directory; `NoDaemonError` when nobody does."""
    record = find_daemon(state_dir)
    if record is None:
        raise NoDaemonError(f"nothing runs {state_dir}", hint="nightherd start")
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
