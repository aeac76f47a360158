"""Ending processes from the worker's side: those of a run, of an execution that lost its worker, of a lost keeper."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping

import anyio
from anyio import to_thread

from nightherd.errors import RefusedError
from nightherd.runtimes.keeper.census import Census, processes, send

EXECUTION_MARK = "NIGHTHERD_EXECUTION"
"""In the environment of every process an execution starts, keepers too: `execution_mark()`."""
KILL_WAIT_S = 5.0
"""After this long a process that survives SIGKILL is stuck in the kernel, and waiting does not help."""
POLL_S = 0.02


async def stop_processes(marks: Mapping[str, str], *, grace_s: float) -> None:
    """End every process that carries all `marks`, and its descendants: SIGTERM, `grace_s` to go, then SIGKILL.

    Cannot be cancelled: when it returns, they are gone.
    """
    census = Census(marks=_entries(marks), spared=_own_line())
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(end_processes, census, grace_s)


def execution_mark(execution: str, directory: str) -> str:
    """Return the mark of an execution of the state directory with this identity.

    Execution ids alone do not do: a copy of a state directory has the same ones, and a worker that
    rescues the copied jobs must not kill the processes of the original.
    """
    return f"{execution}@{directory}" if directory else execution


async def kill_marked(mark: str) -> int:
    """Kill every process that carries this execution mark, whoever started it; how many there were.

    None is left when it returns. This is what makes it safe to start the job again: the worker and the
    keeper of the old execution may have been killed at once, and then nobody else ends what they started.
    `RefusedError` when one of them cannot be killed. Cannot be cancelled.
    """
    census = Census(marks=_entries({EXECUTION_MARK: mark}), spared=_own_line())
    with anyio.CancelScope(shield=True):
        killed, left = await to_thread.run_sync(end_processes, census, 0.0)
    if left:
        pids = ", ".join(str(pid) for pid in sorted(left))
        raise RefusedError(
            f"processes of execution {mark} cannot be killed: {pids}",
            hint="end them, or restart the machine; the job can be started again after that",
        )
    return killed


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


def _entries(marks: Mapping[str, str]) -> frozenset[bytes]:
    if not marks:
        raise ValueError("without a mark no process can be told from the others")
    return frozenset(os.fsencode(f"{name}={value}") for name, value in marks.items())


def _own_line() -> frozenset[int]:
    """This process and those above it, which an agent's command that runs nightherd must not end."""
    parents = {entry.pid: entry.parent for entry in processes()}
    pid = os.getpid()
    line = {pid}
    while (pid := parents.get(pid, 0)) > 0 and pid not in line:
        line.add(pid)
    return frozenset(line)
