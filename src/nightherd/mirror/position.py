"""`mirror.json`: how far the mirror has come, and what it has to remember to go on from there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from nightherd.files.atomic import atomic_write_file
from nightherd.files.corrupt import keep_aside
from nightherd.files.permission import state_file_error
from nightherd.files.regular import read_regular
from nightherd.mirror.behind import VERSION
from nightherd.mirror.memory import Memory

FIRST_VERSION = 1
"""The oldest version that can be upgraded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The memory to go on from, and what there is to say about it."""

    memory: Memory
    data: bytes = b""
    """What the file holds."""
    notice: str | None = None


def load_memory(path: Path, now: datetime) -> Loaded:
    """The memory in `path`. Without one, or with one that cannot be used, everything is mirrored anew.

    A file that cannot be used is kept aside.
    """
    try:
        data = read_regular(path)
        memory = msgspec.json.decode(data, type=Memory)
        if FIRST_VERSION <= memory.v <= VERSION:
            return Loaded(memory=memory, data=data)
        reason = f"version {memory.v}, this nightherd writes {VERSION}"
    except FileNotFoundError:
        return Loaded(memory=Memory(v=VERSION))
    except OSError as error:
        raise state_file_error(error, path) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error)
    aside = keep_aside(path, now)
    notice = (
        f"'{path}' could not be used ({reason}); it is kept as {aside.name}, the mirror starts anew"
    )
    return Loaded(memory=Memory(v=VERSION), notice=notice)


def save_memory(path: Path, memory: Memory, saved: bytes) -> bytes:
    """Write `memory` unless that would be `saved` again; what the file holds then. Not synced."""
    data = msgspec.json.encode(memory) + b"\n"
    if data != saved:
        atomic_write_file(path, data, durable=False)
    return data
