"""A clock that moves only when a test advances it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from nightherd.model.ids import ALPHABET

START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


class FakeClock:
    """Starts at a fixed instant; every reading moves it by `step`, `advance` by as much as asked."""

    def __init__(
        self, at: datetime = START, *, step: timedelta = timedelta(milliseconds=1)
    ) -> None:
        self._at = at
        self._step = step
        self._elapsed = timedelta()

    def now(self) -> datetime:
        """The instant it shows, in UTC."""
        self.advance(self._step)
        return self._at

    def monotonic(self) -> float:
        """Seconds since it was made; setting it back does not change that they grow."""
        self._elapsed += self._step
        return self._elapsed.total_seconds()

    def advance(self, by: timedelta) -> None:
        """Let time pass, or go backwards, as clocks that are set do."""
        self._at += by
        self._elapsed += max(by, timedelta())


class CountingText:
    """Random text that counts: the first call gives `aaa...a`, the next `aaa...b`, and so on."""

    def __init__(self) -> None:
        self._numbers = count()

    def __call__(self, length: int) -> str:
        number = next(self._numbers)
        letters = []
        for _ in range(length):
            number, letter = divmod(number, len(ALPHABET))
            letters.append(ALPHABET[letter])
        return "".join(reversed(letters))
