"""Beats: those who look now and then look at the same moments.

A process that has nothing to do pays for being woken, hardly for what it does then. So the looks of one
worker share their moments instead of each keeping a time of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio


class Beats:
    """Moments, counted from the first question on: two processes have theirs at different times, and take turns.

    `now` is the time by which the event loop sleeps.
    """

    def __init__(self, now: Callable[[], float] = anyio.current_time) -> None:
        self._now = now
        self._begun: float | None = None

    def left_s(self, every_s: float) -> float:
        """Seconds to the next moment of those that are `every_s` apart: some, and never more than that.

        Moments that are a multiple of others apart fall on some of theirs.
        """
        now = self._now()
        if self._begun is None:
            self._begun = now
        return every_s - (now - self._begun) % every_s

    async def wait(self, every_s: float) -> None:
        """Until the next of them."""
        await anyio.sleep(self.left_s(every_s))
