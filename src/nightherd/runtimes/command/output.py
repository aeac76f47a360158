"""What a command printed, in bounded memory: standard output for the next phase, and both streams for people."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from nightherd.model.journal.event import ToolResultEvent
from nightherd.model.secrets import SecretFilter, Secrets
from nightherd.runtimes.tools.output import OUTPUT_LIMIT_BYTES, BoundedOutput, WholeOutput
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome

STDOUT_LIMIT_BYTES = 1024 * 1024
"""Of standard output, for the next phase; of more, both ends with a mark between them."""
LINE_BYTES = 64 * 1024
"""A longer line is passed on before it ends."""
LAST_LINES = 5
LAST_CHARACTERS = 400
"""Of the end of an output that an error says."""
STDOUT, STDERR = "stdout", "stderr"


class _Stream:
    """One of the streams. Secrets are masked in each by itself: between its pieces the other one may print."""

    def __init__(self, limit: int, secrets: Secrets, whole: WholeOutput) -> None:
        self.kept = BoundedOutput(limit)
        self.size = 0
        self._filter = SecretFilter(secrets)
        self._whole = whole
        self._line = b""

    def add(self, chunk: bytes) -> None:
        self._take(self._filter.feed(chunk))

    def finish(self) -> None:
        self._take(self._filter.finish())
        self._whole.add(self._line)
        self._line = b""

    def _take(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.kept.add(chunk)
        self._line += chunk
        cut = len(self._line) if len(self._line) > LINE_BYTES else self._line.rfind(b"\n") + 1
        self._whole.add(self._line[:cut])
        self._line = self._line[cut:]


class CommandOutput:
    """Takes what a command prints. Both streams together stand line by line in the order in which they came."""

    def __init__(self, context: ToolContext) -> None:
        # Masked before the streams are put together, and once more where the whole is stored.
        self._whole = WholeOutput(context)
        self.stdout = _Stream(STDOUT_LIMIT_BYTES, context.secrets, self._whole)
        self.stderr = _Stream(OUTPUT_LIMIT_BYTES, context.secrets, self._whole)

    def __enter__(self) -> Self:
        self._whole.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._whole.__exit__(kind, error, trace)

    def last_lines(self) -> str:
        """Return the last lines of standard error, or of standard output when nothing else was printed."""
        self._finish()
        stream = self.stderr if self.stderr.size else self.stdout
        lines = [line for line in stream.kept.text().splitlines() if line.strip()]
        return "\n".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:]

    def put_into(self, result: ToolResultEvent) -> ToolResultEvent:
        """Return the result with what was printed; nothing is added after it.

        `result.result` is both streams where they are short, else standard output. `standard_output` reads it back.
        """
        self._finish()
        extra: dict[str, Any] = dict(result.extra or {})
        if self.stdout.size + self.stderr.size <= OUTPUT_LIMIT_BYTES:
            shown = self._whole.text()
            if self.stderr.size:
                extra[STDOUT] = self.stdout.kept.text()
        else:
            shown = self.stdout.kept.text()
            if self.stderr.size:
                extra[STDERR] = self.stderr.kept.text()
        changed: ToolResultEvent = replace(result, result=shown, extra=extra or None)
        return changed

    async def stored(self, result: ToolResultEvent) -> ToolResultEvent:
        """Return the result with all of the output stored, where it lacks some."""
        if not (self.stdout.kept.is_cut or self.stderr.kept.is_cut):
            return result
        outcome = await self._whole.stored(ToolOutcome(result=""))
        extra = dict(result.extra or {})
        if outcome.result:  # why it could not be stored
            extra["not_stored"] = outcome.result.strip()
        changed: ToolResultEvent = replace(
            result, full_output=outcome.full_output, extra=extra or None
        )
        return changed

    def _finish(self) -> None:
        self.stdout.finish()
        self.stderr.finish()


def standard_output(result: ToolResultEvent) -> str:
    """Return standard output as the next phase gets it: without line breaks at its end."""
    extra = result.extra or {}
    text = extra.get(STDOUT, result.result)
    return str(text or "").rstrip("\n")
