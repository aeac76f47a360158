"""Reading another tool's files: only ever reading, in blocks, however long the file or a line of it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from nightherd.files.regular import FLAGS, check_regular

BLOCK = 512 * 1024
LINE_LIMIT = 64 * 1024 * 1024
"""Longest line that is looked at, in bytes; a longer one is reported, never held in memory."""

BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line without its newline, counted from 1; None in place of one beyond the limit."""

    number: int
    text: bytes | None
    is_ended: bool = True
    """Whether its newline is there: the last line of a file may still be written, or torn."""


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A handle for reading a regular file; `OSError` when it is none."""
    handle = os.open(path, FLAGS)
    try:
        check_regular(handle, path)
        yield handle
    finally:
        os.close(handle)


def blocks(handle: int) -> Iterator[bytes]:
    """What the file holds, from where the handle stands to its end now."""
    while block := os.read(handle, BLOCK):
        yield block


class LineCutter:
    """Cuts blocks into lines. Holds at most one line, and of one beyond the limit nothing."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._number = 0
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, block: bytes) -> Iterator[Line]:
        """The lines that `block` ends."""
        begun, whole = self.part(block)
        if begun is not None:
            yield begun
        yield from self.split(whole)

    def part(self, block: bytes) -> tuple[Line | None, bytes]:
        """The line that began before `block` and ends in it, and the whole lines after that in one piece.

        Those are the caller's to `split`, or to `pass_over` when it has read them all at once.
        """
        start, end = 0, block.rfind(b"\n") + 1
        begun = None
        if end and (self._length or self._number == 0):
            start = block.find(b"\n") + 1
            self._hold(block[: start - 1])
            begun = self._take(is_ended=True)
        self._hold(block[end:])
        return begun, block[start:end]

    def split(self, whole: bytes) -> Iterator[Line]:
        """The lines of a piece that `part` gave."""
        for text in whole.split(b"\n")[:-1]:
            self._number += 1
            yield Line(self._number, text if len(text) <= self._limit else None)

    def pass_over(self, count: int) -> None:
        """So many lines of a piece that `part` gave were read."""
        self._number += count

    def end(self) -> Iterator[Line]:
        """The last line, when no newline ended it."""
        if self._length:
            yield self._take(is_ended=False)

    def _hold(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > self._limit:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _take(self, *, is_ended: bool) -> Line:
        text = b"".join(self._parts) if self._length <= self._limit else None
        self._parts, self._length = [], 0
        self._number += 1
        if self._number == 1 and text is not None:
            text = text.removeprefix(BOM)
        return Line(self._number, text, is_ended)


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a regular file, blank ones too."""
    cutter = LineCutter()
    with opened(path) as handle:
        for block in blocks(handle):
            yield from cutter.feed(block)
        yield from cutter.end()


def read_object(text: bytes) -> dict[str, Any]:
    """The JSON object of a line, or `ValueError`. JavaScript writes lone surrogates; they become U+FFFD."""
    try:
        value = json.loads(text)
        if b"\\u" in text:
            plain = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = json.loads(plain.decode("utf-16", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start + 1}") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 (what the caller lists is a bad record)
    return value


def too_long() -> str:
    """Why a line beyond the limit was not looked at."""
    return f"longer than {LINE_LIMIT // (1024 * 1024)} MiB"


def reason_of(error: OSError | ValueError) -> str:
    """Why something could not be read, in a few words."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return " ".join(str(error).split())


def shown(path: Path) -> str:
    """The path as text that any file can hold, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
