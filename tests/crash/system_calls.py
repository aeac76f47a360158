"""The system calls of a process that changes files, as points where a probe is told.

Only for processes that are about to be killed: nothing is put back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from nightherd.files.atomic import FileCalls
from nightherd.ports import Probe

CHANGING = (
    "write",
    "pwrite",
    "truncate",
    "ftruncate",
    "replace",
    "rename",
    "unlink",
    "mkdir",
    "open",
)
SYNCING = ("fsync", "fdatasync")


def probe_system_calls(probe: Probe) -> FileCalls:
    """From now on `probe` is told before and after each call that changes or syncs a file.

    The calls as `FileCalls`, for those who were given the real ones before.
    """
    told = _Told()
    for name in (*CHANGING, *SYNCING):
        setattr(os, name, _probed(name, getattr(os, name), probe, told))
    return FileCalls(rename=os.replace, fsync=os.fsync)


class _Told(threading.local):
    """Whether this thread is telling the probe: what the probe does itself is no point."""

    is_now = False


def _probed(name: str, call: Callable[..., Any], probe: Probe, told: _Told) -> Callable[..., Any]:
    def tell(point: str) -> None:
        told.is_now = True
        probe(point)
        told.is_now = False

    def probed(*given: Any, **named: Any) -> Any:
        if told.is_now:
            return call(*given, **named)
        # Opening changes something only when it makes the file.
        if name == "open" and not (len(given) > 1 and given[1] & os.O_CREAT):
            return call(*given, **named)
        if name == "write" and given[0] in (1, 2):
            return call(*given, **named)
        tell(f"{name}.before")
        done = call(*given, **named)
        tell(f"{name}.after")
        return done

    return probed
