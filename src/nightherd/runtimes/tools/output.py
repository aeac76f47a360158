"""What a process printed, in bounded memory: the beginning and the end, and how much is missing between."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self, TypeGuard

from msgspec.structs import replace

from nightherd.errors import JournalError
from nightherd.model.secrets import NO_SECRETS, SecretFilter, Secrets
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome

OUTPUT_LIMIT_BYTES = 48 * 1024
"""Kept of one call's output: enough to read, and below what the journal moves to a file of its own."""


class BoundedOutput:
    """Takes any number of bytes, masks `secrets`, and keeps at most `limit` of them, half from each end."""

    def __init__(self, limit: int = OUTPUT_LIMIT_BYTES, secrets: Secrets = NO_SECRETS) -> None:
        self._filter = SecretFilter(secrets)
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        """Take `chunk`, which follows all that was added before."""
        self._take(self._filter.feed(chunk))

    def _take(self, chunk: bytes) -> None:
        room = self._head_limit - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        surplus = len(self._tail) - self._tail_limit
        if surplus > 0:
            del self._tail[:surplus]
            self._dropped += surplus

    @property
    def is_cut(self) -> bool:
        """Whether anything is left out."""
        self._take(self._filter.finish())
        return self._dropped > 0

    @property
    def tail(self) -> bytes:
        """What is kept of the end."""
        self._take(self._filter.finish())
        return bytes(self._tail)

    def text(self) -> str:
        """What was kept as text; bytes that are not UTF-8 become U+FFFD, what is left out is counted."""
        self._take(self._filter.finish())
        if not self._dropped:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = _whole_end(self._head), _whole_start(self._tail)
        left_out = self._dropped + len(self._head) - len(head) + len(self._tail) - len(tail)
        note = f"\n[... {left_out:,} bytes left out ...]\n"
        return head.decode(errors="replace") + note + tail.decode(errors="replace")


def _whole_end(data: bytearray) -> bytearray:
    """`data` without a character that the cut at its end went through."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)
            return data[:-back] if needed > back else data
    return data


def _whole_start(data: bytearray) -> bytearray:
    """`data` without the rest of a character that the cut at its start went through."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


KEPT_LIMIT_BYTES = 64 * 1024 * 1024
"""Stored of one call's output; of more, the beginning and what `BoundedOutput` has of the end."""

PIECE_BYTES = 256 * 1024


class WholeOutput:
    """Takes any number of bytes, masks secrets, and keeps both ends in memory, all of them in a file without a name.

    Such a file is gone with the process, however that ends. A file that cannot be written costs only the middle.
    """

    def __init__(self, context: ToolContext, kept_limit: int = KEPT_LIMIT_BYTES) -> None:
        self._keep = context.keep_output
        self._kept_limit = kept_limit
        self._filter = SecretFilter(context.secrets)
        self._ends = BoundedOutput()
        self._size = 0
        self._failure: Exception | None = None
        self._file = tempfile.SpooledTemporaryFile(max_size=OUTPUT_LIMIT_BYTES)  # noqa: SIM115 (closed by `__exit__`)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, chunk: bytes) -> None:
        """Take `chunk`, which follows all that was added before."""
        self._take(self._filter.feed(chunk))

    def _take(self, chunk: bytes) -> None:
        self._ends.add(chunk)
        room = self._kept_limit - self._size
        self._size += len(chunk)
        if self._keep is not None and self._failure is None and room > 0:
            try:
                self._file.write(chunk[:room])
            except OSError as error:
                self._failure = error

    def text(self) -> str:
        """Both ends, as the model gets them; nothing is added after it."""
        self._take(self._filter.finish())
        return self._ends.text()

    async def stored(self, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome with the whole output stored, where its result has only the ends."""
        self._take(self._filter.finish())
        if not self._ends.is_cut or self._keep is None:
            return outcome
        failure = self._failure
        if failure is None:
            try:
                return replace(
                    outcome, full_output=await self._keep(self._pieces(), self._left_out)
                )
            except (JournalError, OSError) as error:
                failure = error
        note = f"[the bytes left out could not be stored: {failure}]"
        return replace(outcome, result=f"{outcome.result or ''}\n{note}\n")

    @property
    def _left_out(self) -> int:
        """Bytes that are in no place."""
        return max(self._size - self._kept_limit - len(self._ends.tail), 0)

    def _pieces(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._file.seek(0)
        while piece := self._file.read(PIECE_BYTES):
            yield decoder.decode(piece)
        beyond = self._size - self._kept_limit
        if self._left_out:
            yield decoder.decode(b"", final=True)
            yield f"\n[... {self._left_out:,} bytes left out ...]\n"
        tail = self._ends.tail[-beyond:] if beyond > 0 else b""
        yield decoder.decode(tail, final=True)


async def bounded(outcome: ToolOutcome, context: ToolContext) -> ToolOutcome:
    """The outcome with both ends of a long result or error, all of it stored."""
    if _is_long(outcome.error):
        return await _stored(outcome.error, context, lambda ends: replace(outcome, error=ends))
    if _is_long(outcome.result):
        return await _stored(outcome.result, context, lambda ends: replace(outcome, result=ends))
    return outcome


def _is_long(text: str | None) -> TypeGuard[str]:
    return text is not None and len(text) > OUTPUT_LIMIT_BYTES


async def _stored(
    text: str, context: ToolContext, with_ends: Callable[[str], ToolOutcome]
) -> ToolOutcome:
    with WholeOutput(context) as output:
        output.add(text.encode("utf-8", "replace"))
        return await output.stored(with_ends(output.text()))
