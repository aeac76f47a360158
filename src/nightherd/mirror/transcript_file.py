"""One transcript on disk: appended to, never rewritten, and asked what it holds before it is."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from nightherd.files.atomic import write_all
from nightherd.files.permission import atomic_write_error

PRIVATE = 0o600
FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Mark(msgspec.Struct, frozen=True):
    """As much of a line as it takes to know what it is."""

    type: str = ""
    jobId: str = ""
    seq: int = 0


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a transcript holds: its size, the last event of each job in it, the jobs whose result is in it."""

    size: int = 0
    seqs: dict[str, int] = msgspec.field(default_factory=dict)
    results: set[str] = msgspec.field(default_factory=set)


def examine(path: Path, known: int | None) -> Held:
    """What stands in the file after its first `known` bytes, which are ours and need no second look.

    A last line that a killed writer did not finish is cut: it comes again, whole. A file that is shorter
    than it was is another file, and is looked at from its beginning.
    """
    try:
        size = path.lstat().st_size
    except FileNotFoundError:
        return Held()
    start = known if known is not None and known <= size else 0
    if start == size:
        return Held(size=size)
    try:
        return _examine(path, start)
    except OSError as error:
        raise atomic_write_error(error, path) from error


def append(path: Path, held: int, data: bytes) -> int:
    """Add `data` to the file, which has `held` bytes, in a directory that is there; its size then.

    When that fails the file is what it was: nothing of `data` is in it.
    """
    try:
        handle = os.open(path, FLAGS, PRIVATE)
        try:
            write_all(handle, data)
        except OSError:
            os.ftruncate(handle, held)
            raise
        finally:
            os.close(handle)
    except OSError as error:
        raise atomic_write_error(error, path) from error
    return held + len(data)


def _examine(path: Path, start: int) -> Held:
    decoder = msgspec.json.Decoder(Mark)
    seqs: dict[str, int] = {}
    results: set[str] = set()
    end = start
    with os.fdopen(os.open(path, FLAGS, PRIVATE), "rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                break
            end += len(line)
            mark = _mark(decoder, line)
            if mark.type == "result":
                results.add(mark.jobId)
            else:
                seqs[mark.jobId] = max(mark.seq, seqs.get(mark.jobId, 0))
        if os.fstat(file.fileno()).st_size != end:
            os.ftruncate(file.fileno(), end)
    return Held(size=end, seqs=seqs, results=results)


def _mark(decoder: msgspec.json.Decoder[Mark], line: bytes) -> Mark:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Mark()  # somebody else's line: it stays, and says nothing about ours
