"""Holder: who has `write.lock`, written into the file, and what may be done about one that does not move.

A process is named by its pid and start time: a pid alone may belong to another process by now. Where the
kernel does not say (no /proc), no process is ever killed.
"""

from __future__ import annotations

import json
import os
import signal

import msgspec

from nightherd.host.process import PROC, boot_id, pid_namespace, start_time, stat_fields

RECORD_BYTES = 256
"""The record has a fixed size, so that a shorter one leaves nothing of a longer one behind."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """One hold of the lock by one process. `hold` counts that process's holds: another hold is progress."""

    pid: int
    start: int
    boot: str
    namespace: str
    hold: int

    def record(self) -> bytes:
        """What stands in the lock file while this hold lasts."""
        text = msgspec.json.encode(self)
        return text.ljust(RECORD_BYTES - 1) + b"\n"


def this_process(hold: int) -> Holder:
    """This process as a holder."""
    return Holder(
        pid=os.getpid(),
        start=start_time(os.getpid()) or 0,
        boot=boot_id(),
        namespace=pid_namespace(),
        hold=hold,
    )


def read_holder(descriptor: int) -> Holder | None:
    """The last hold written to the lock file, or None when it says nothing that can be understood."""
    try:
        found = json.loads(os.pread(descriptor, RECORD_BYTES, 0))
        return Holder(**found)
    except (ValueError, TypeError):
        return None


def is_stopped(holder: Holder) -> bool:
    """Whether the holder is there, is that very process, and is stopped (by a signal or a debugger)."""
    fields = stat_fields(holder.pid)
    return fields is not None and int(fields[19]) == holder.start and fields[0] in ("T", "t")


def has_lock(holder: Holder, descriptor: int) -> bool:
    """Whether the kernel, too, says that this process holds the lock: a record alone may be stale."""
    inode = os.fstat(descriptor).st_ino
    try:
        lines = (PROC / "locks").read_text().splitlines()
    except OSError:
        return False
    wanted = ("FLOCK", str(holder.pid), str(inode))
    for line in lines:
        fields = line.split()
        # A process that waits has an arrow where a holder has the kind of its lock.
        if wanted == (fields[1], fields[4], fields[5].rsplit(":", 1)[-1]):
            return True
    return False


def kill(holder: Holder) -> bool:
    """Kill exactly this process, or none: another boot, namespace or start time is another process."""
    if holder.boot != boot_id() or holder.namespace != pid_namespace() or holder.pid == os.getpid():
        return False
    try:
        # The descriptor pins the process, so the start time is checked on what is then killed.
        descriptor = os.pidfd_open(holder.pid)
    except (OSError, AttributeError):
        return False
    try:
        if start_time(holder.pid) != holder.start:
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
