"""Claude's transcripts as the engine reads them: the last thing said, and everything since a place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from nightherd.imports.claude_turns import Price, last_said, no_price, said_since
from nightherd.model.journal.event import Event

TAIL = 64 * 1024
"""Bytes that are looked at for the last thing said; it is rarely longer."""


class TranscriptFile(Protocol):
    """The transcript of one session: Claude's own file, and our copy of it."""

    def lines(self) -> Iterable[bytes]:
        """Every line of our copy."""

    def newest_lines(self) -> Iterable[bytes]:
        """Every line of whichever has more."""

    def tail(self, size: int) -> Sequence[bytes]:
        """The whole lines among the last `size` bytes of Claude's file."""


class ClaudeTranscripts:
    """Implements the `Transcripts` port; `find` gives the transcript of a session by its id and directory.

    `is_claude` tells the runtimes that keep them; `price` estimates what an answer cost.
    """

    def __init__(
        self,
        find: Callable[[str, str], TranscriptFile],
        is_claude: Callable[[str], bool],
        price: Price = no_price,
    ) -> None:
        self._find = find
        self._is_claude = is_claude
        self._price = price

    def covers(self, runtime_type: str) -> bool:
        """Return whether the runtime of that name keeps Claude's transcripts."""
        return self._is_claude(runtime_type)

    def last_said(self, runtime_session_id: str, directory: str) -> str | None:
        """The uuid of the last thing said in Claude's own file."""
        file = self._find(runtime_session_id, directory)
        return last_said(file.tail(TAIL)) or last_said(list(file.newest_lines()))

    def said_since(
        self,
        runtime_session_id: str,
        directory: str,
        known: Collection[str],
        *,
        is_kept: bool = False,
        with_cost: bool = False,
    ) -> Sequence[Event]:
        """Everything said after the last `known` line, along the line that counts."""
        file = self._find(runtime_session_id, directory)
        lines = file.lines() if is_kept else file.newest_lines()
        return said_since(lines, known, self._price if with_cost else no_price)
