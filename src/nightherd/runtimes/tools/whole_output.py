"""The whole of what a tool printed: in a temporary file while it runs, then stored beside the journal."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeGuard

from nightherd.errors import JournalError
from nightherd.model.secret_filter import SecretFilter
from nightherd.runtimes.tools.output import OUTPUT_LIMIT_BYTES, BoundedOutput
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome

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
