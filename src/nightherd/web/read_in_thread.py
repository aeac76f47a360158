"""Asking: views are synchronous, so every question is put in a thread, with a reader of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from nightherd.ports import StateReader

AnswerT = TypeVar("AnswerT")

MOST_AT_ONCE = 4


class ReadInThread:
    """Puts questions to state without holding up the event loop; at most so many at once."""

    def __init__(self, open_reader: Callable[[], StateReader]) -> None:
        self._open_reader = open_reader
        self._limiter = CapacityLimiter(MOST_AT_ONCE)
        self._idle: list[StateReader] = []

    async def __call__(self, question: Callable[[StateReader], AnswerT]) -> AnswerT:
        """The answer of `question`, which is called in a thread with a reader of its own."""
        return await to_thread.run_sync(self._ask, question, limiter=self._limiter)

    def close(self) -> None:
        """Give the readers back."""
        while self._idle:
            self._idle.pop().close()

    def _ask(self, question: Callable[[StateReader], AnswerT]) -> AnswerT:
        # A list is safe to share between threads; a reader that met with an error is not used again.
        reader = self._idle.pop() if self._idle else self._open_reader()
        try:
            answer = question(reader)
        except BaseException:
            reader.close()
            raise
        self._idle.append(reader)
        return answer


UNTIL = "nightherd-until"
"""A boot of this machine and a time on its monotonic clock, with a space between."""


def until_text(boot_id: str, monotonic: float) -> str:
    """The value of the header."""
    return f"{boot_id} {monotonic:.3f}"


def is_past(text: str, boot_id: str, monotonic: float) -> bool:
    """Whether that time is over; what cannot be read is."""
    boot, _, instant = text.partition(" ")
    try:
        return boot != boot_id or monotonic > float(instant)
    except ValueError:
        return True
