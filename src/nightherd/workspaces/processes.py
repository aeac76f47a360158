"""Processes of git: waited for, and killed with everything they started when they take too long."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

STOP_S = 0.2
"""How often a command that may be stopped is looked at."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a command left: its exit status, minus a signal's number when it was killed, and its output."""

    status: int
    out: bytes
    err: bytes
    is_timed_out: bool = False
    """Whether it was killed because it took too long."""


def finish(
    process: subprocess.Popen[bytes],
    data: bytes | None,
    timeout: float,
    check: Callable[[], None] | None = None,
) -> Output:
    """How the command ended. It is killed when it takes too long, or when `check` raises."""
    is_timed_out = False
    try:
        if check is None:
            out, err = process.communicate(data or b"", timeout)
        else:
            out, err = _communicate(process, data or b"", timeout, check)
    except subprocess.TimeoutExpired:
        is_timed_out = True
        out, err = kill(process)
    except BaseException:
        kill(process)
        raise
    return Output(status=process.returncode, out=out, err=err, is_timed_out=is_timed_out)


def _communicate(
    process: subprocess.Popen[bytes], data: bytes, timeout: float, check: Callable[[], None]
) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + timeout
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        try:
            return process.communicate(data, min(left, STOP_S))
        except subprocess.TimeoutExpired:
            check()
            if left == 0:
                raise
            data = b""  # the first call goes on with all of it


def kill(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """End a command with everything that it started: its own group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()
