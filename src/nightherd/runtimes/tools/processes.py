"""Stopping processes: everything a call or a whole run has started, also what moved to a session of its own.

A process belongs when it carries all the marks in its environment, is in the process group of `root`, or
descends from one that belongs. Where there is no /proc, the process group of `root` is all that is found.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

PROC = Path("/proc")
KILL_WAIT_S = 5.0
"""After this long a process that survives SIGKILL is stuck in the kernel, and waiting does not help."""
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class _Entry:
    pid: int
    parent: int
    group: int
    started: int


async def stop_processes(
    marks: Mapping[str, str], *, root: int | None = None, grace_s: float
) -> None:
    """End every process that belongs: SIGTERM, `grace_s` to go, then SIGKILL until none is left.

    Cannot be cancelled: when it returns, they are gone.
    """
    herd = _Herd(marks, root)
    with anyio.CancelScope(shield=True):
        if not await _end(herd, signal.SIGTERM, once=True, wait_s=grace_s):
            await _end(herd, signal.SIGKILL, once=False, wait_s=KILL_WAIT_S)


async def _end(herd: _Herd, number: signal.Signals, *, once: bool, wait_s: float) -> bool:
    """Send the signal, to those that appear later too, until none is left (True) or time is up."""
    sent: set[int] = set()
    with anyio.move_on_after(wait_s):
        while alive := await to_thread.run_sync(herd.find):
            for pid in alive - sent if once else alive:
                herd.send(pid, number)
            sent |= alive
            await anyio.sleep(POLL_S)
        return True
    return False


class _Herd:
    """The processes that belong, as they are found; one once found stays ours when its parent goes."""

    def __init__(self, marks: Mapping[str, str], root: int | None) -> None:
        self._marks = frozenset(os.fsencode(f"{name}={value}") for name, value in marks.items())
        self._root = root
        self._known: set[_Entry] = set()

    def find(self) -> set[int]:
        """The pids of those alive now; a negative one stands for a process group."""
        if not (PROC / "self" / "stat").exists():
            return self._find_group()
        entries = list(_processes())
        known = {(entry.pid, entry.started) for entry in self._known}
        found = {
            entry.pid: entry
            for entry in entries
            if (entry.pid, entry.started) in known
            or (self._root is not None and self._root in (entry.pid, entry.group))
            or self._is_marked(entry.pid)
        }
        while more := [e for e in entries if e.parent in found and e.pid not in found]:
            found.update((entry.pid, entry) for entry in more)
        found.pop(os.getpid(), None)
        self._known = set(found.values())
        return set(found)

    def send(self, pid: int, number: signal.Signals) -> None:
        """Signal one of those found; one that has gone since is what was wanted."""
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def _find_group(self) -> set[int]:
        if self._root is None:
            return set()
        try:
            os.killpg(self._root, 0)
        except (ProcessLookupError, PermissionError):
            return set()
        return {-self._root}

    def _is_marked(self, pid: int) -> bool:
        if not self._marks:
            return False
        try:
            environment = (PROC / str(pid) / "environ").read_bytes()
        except OSError:  # gone, or another person's
            return False
        return self._marks <= set(environment.split(b"\0"))


def _processes() -> Iterator[_Entry]:
    """Every process that runs; not those that only wait for their parent to take note of their end."""
    for name in os.listdir(PROC):  # noqa: PTH208 names are all that is needed, thousands of times
        if not name.isdigit():
            continue
        try:
            stat = (PROC / name / "stat").read_bytes()
        except OSError:
            continue
        # The command's name stands in parentheses and may contain anything, also parentheses.
        fields = stat[stat.rindex(b")") + 2 :].split()
        if fields[0] not in (b"Z", b"X"):
            yield _Entry(int(name), int(fields[1]), int(fields[2]), int(fields[19]))
