"""Line checksums: the last field of a JSON line is a CRC-32 of everything before it.

A line of an older nightherd has none and counts as intact. Readers that do not know the field skip it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from zlib import crc32

from nightherd.errors import StateFileError
from nightherd.files.atomic import SYSTEM_CALLS, FileCalls, write_all
from nightherd.files.permission import state_file_error

FIELD = b',"crc":"'
DIGITS = 8
LENGTH = len(FIELD) + DIGITS + len(b'"}')


def with_checksum(line: bytes) -> bytes:
    """Return the JSON object `line` (no line end) with its checksum as the last field."""
    body = line[:-1]
    return b'%b,"crc":"%08x"}' % (body, crc32(body))


def is_intact(line: bytes) -> bool:
    """Whether the line, with or without its end, is what was written; True when it has no checksum."""
    line = line.removesuffix(b"\n")
    body, tail = line[:-LENGTH], line[-LENGTH:]
    if not tail.startswith(FIELD):
        return True
    return tail[len(FIELD) :] == b'%08x"}' % crc32(body)


PRIVATE = 0o600


def append_jsonl(
    path: str | Path, data: Any, *, durable: bool = False, calls: FileCalls = SYSTEM_CALLS
) -> None:
    """Append `data` as one line, written at once; the file is made when it is not there.

    An unfinished last line is ended first: it stays a bad line of its own and does not
    swallow this one. Lines that were there are never touched, whatever fails.
    """
    try:
        line = (json.dumps(data, separators=(",", ":"), allow_nan=False) + "\n").encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"'{path}': this cannot be written as JSON: {error}"
        raise StateFileError(message, path=str(path), operation="append") from error
    try:
        _append(Path(path), line, calls if durable else None)
    except OSError as error:
        raise state_file_error(error, path, "append") from error


def _append(path: Path, line: bytes, durable: FileCalls | None) -> None:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    handle = os.open(path, flags, PRIVATE)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            line = b"\n" + line
        write_all(handle, line)
        if durable is not None:
            durable.fsync(handle)
    finally:
        os.close(handle)
