"""The system calls that writing a file stands on, as values a test can replace with failing ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCalls:
    """What the machine does for us; the defaults are the real thing."""

    rename: Callable[[str, str], None] = os.replace
    """Of names, not of path objects: making those costs more than the call, and a mirror renames all day."""
    fsync: Callable[[int], None] = os.fsync
    sleep: Callable[[float], None] = time.sleep


SYSTEM_CALLS = FileCalls()
"""The real ones."""


def sync_directory(directory: Path, calls: FileCalls = SYSTEM_CALLS) -> None:
    """The names in `directory` survive a power cut from here on."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        calls.fsync(handle)
    finally:
        os.close(handle)


def write_all(descriptor: int, data: bytes) -> None:
    """Write `data` to its last byte; the system may take it in pieces."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
