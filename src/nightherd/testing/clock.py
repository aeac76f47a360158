"""A clock that moves when it is told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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
