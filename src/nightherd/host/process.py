"""Processes by name: a pid and when it started. A pid alone may belong to another process by now.

Linux has them in /proc; elsewhere a process's start time is unknown and only its pid counts.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from nightherd.host.system import SystemClock
from nightherd.model.worker import is_lease_over
from nightherd.ports import Process, process_of

if TYPE_CHECKING:
    from nightherd.model.worker import Worker


PROC = Path("/proc")
STATE, START_TIME = 0, 19
"""Places in /proc/<pid>/stat, counted after the name."""


def this_process() -> Process:
    """Who this is."""
    pid = os.getpid()
    return Process(
        host=platform.node(), pid=pid, started=str(start_time(pid) or ""), boot_id=boot_id()
    )


def is_alive(process: Process) -> bool:
    """Whether that very process is still there. None outlives its boot, not even under another name of the machine.

    One of the same boot and another host is in a container that cannot be looked into: it may be there.
    """
    if process.boot_id != boot_id():
        return False
    if process.host != platform.node():
        return True
    if PROC.is_dir() and process.started:
        return str(start_time(process.pid) or "") == process.started
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat after the name, which may itself hold spaces and brackets."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 1 :].split()


def start_time(pid: int) -> int | None:
    """When `pid` started, in clock ticks since boot; None when there is no such process.

    A zombie has ended: it only waits for its parent to hear of it.
    """
    fields = stat_fields(pid)
    if fields is None or fields[STATE] == "Z":
        return None
    return int(fields[START_TIME])


def boot_id() -> str:
    """Which boot of this machine this is."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def pid_namespace() -> str:
    """Whose numbering of processes this is."""
    try:
        return str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def is_at_work(worker: Worker) -> bool:
    """Whether the worker's lease holds and its process is there."""
    return not is_lease_over(
        worker,
        boot_id=boot_id(),
        monotonic=SystemClock().monotonic(),
        is_process_alive=is_alive(process_of(worker)),
    )
