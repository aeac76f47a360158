"""Ending processes from the worker's side."""

from __future__ import annotations

import signal
import time

from nightherd.runtimes.keeper.census import Census, send

KILL_WAIT_S = 5.0
"""After this long a process that survives SIGKILL is stuck in the kernel, and waiting does not help."""
POLL_S = 0.02


def end_processes(census: Census, grace_s: float) -> tuple[int, frozenset[int]]:
    """Carry out the end of all that the census finds: how many were signalled, and the pids left after all."""
    signalled: set[tuple[int, int]] = set()
    began = time.monotonic()
    while alive := census.find():
        passed = time.monotonic() - began
        if passed > grace_s + KILL_WAIT_S:
            return len(signalled), frozenset(alive)
        is_over = passed >= grace_s
        for process in alive.items():
            if is_over or process not in signalled:
                send(process[0], signal.SIGKILL if is_over else signal.SIGTERM)
                signalled.add(process)
        time.sleep(POLL_S)
    return len(signalled), frozenset()
