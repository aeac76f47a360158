"""Reading another tool's files: only ever reading, in blocks, and fields only if they are what they should be."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nightherd.errors import InvalidValueError
from nightherd.files.regular import FLAGS, check_regular
from nightherd.model.ids import check_name

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


def read_value(text: bytes) -> Any:
    """Return the JSON value of a text, or raise `ValueError`. JavaScript writes lone surrogates; they become U+FFFD."""
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
    return value


def read_object(text: bytes) -> dict[str, Any]:
    """Return the JSON object of a line, or raise `ValueError`."""
    value = read_value(text)
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


LARGEST_COUNT = 2**53
"""Beyond this no program that writes JSON can count."""

Word = TypeVar("Word", bound=StrEnum)


class Fields:
    """A mapping of a foreign file. What has to be there and is not, or is something else, is a `ValueError`."""

    def __init__(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise ValueError("not a mapping of fields")  # noqa: TRY004 (a bad record, not a bad call)
        self._value = value

    def text(self, name: str) -> str:
        """A text that has to be there."""
        found = self.find_text(name)
        if not found:
            raise ValueError(f"no {name}")
        return found

    def find_text(self, name: str) -> str | None:
        """A text, if there is one."""
        found = self._value.get(name)
        return found if isinstance(found, str) else None

    def name(self, name: str) -> str:
        """The name of an agent, `fleet.agent` too: it becomes part of file names."""
        return check_agent(self.text(name))

    def word(self, name: str, words: type[Word]) -> Word:
        """One of a closed list of words."""
        found = self.text(name)
        try:
            return words(found)
        except ValueError:
            raise ValueError(f"{name} is {found[:80]!r}, which is not known") from None

    def find_word(self, name: str, words: type[Word]) -> Word | None:
        """One of a closed list of words, if it is one."""
        return next((word for word in words if word.value == self._value.get(name)), None)

    def at(self, name: str) -> datetime:
        """An instant that has to be there."""
        found = self.find_at(name)
        if found is None:
            raise ValueError(f"{name} is not a date and time")
        return found

    def find_at(self, name: str) -> datetime | None:
        """An instant, if there is one."""
        return instant(self.find_text(name))

    def count(self, name: str) -> int:
        """A number of something; 0 when there is none."""
        found = self._value.get(name)
        return found if is_count(found) and isinstance(found, int) else 0

    def is_set(self, name: str) -> bool:
        """A flag."""
        return self._value.get(name) is True

    def part(self, name: str) -> Mapping[str, Any]:
        """A mapping below this one; empty when there is none."""
        found = self._value.get(name)
        return found if isinstance(found, Mapping) else {}

    def raw(self, name: str) -> Any:
        """Whatever is there."""
        return self._value.get(name)


def check_agent(text: str) -> str:
    """`text` if it can be an agent's qualified name, else `ValueError`."""
    try:
        for part in text.split("."):
            check_name(part)
    except InvalidValueError as error:
        raise ValueError(error.message) from None
    return text


def is_count(value: object) -> bool:
    """Whether `value` is a number of something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_COUNT


def instant(text: str | None) -> datetime | None:
    """An instant as foreign files give it, in UTC; None when there is none to be had."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
