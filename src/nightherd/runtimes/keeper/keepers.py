"""The keepers one owner has running: how many may start at once, one sign of life for all, one end for all.

A worker has one such set for all it does, and a branch of it for each run: a sign of life reaches every
branch, and ending a run ends its branch alone.
"""

from __future__ import annotations

import math
import os
from datetime import timedelta
from typing import Protocol

import anyio

from nightherd.runtimes.keeper.place import HOST, Place

MARGIN_S = 1.0


class Kept(Protocol):
    """What an owner of keepers does with each of them."""

    def send_heartbeat(self, deadline: float) -> None: ...
    async def stop(self, grace: timedelta | None = None) -> object: ...


def start_limiter() -> anyio.CapacityLimiter:
    """How many processes may be starting at the same moment: one per core, for more is slower."""
    return anyio.CapacityLimiter(os.cpu_count() or 1)


class Keepers:
    """Those of one worker, or of one run of it."""

    def __init__(
        self,
        *,
        starts: anyio.CapacityLimiter | None = None,
        margin_s: float = MARGIN_S,
        directory: str = "",
        place: Place = HOST,
    ) -> None:
        self.starts = starts if starts is not None else start_limiter()
        self.margin_s = margin_s
        """How much before a deadline keepers begin to act on it."""
        self.directory = directory
        """The identity of the state directory this worker works for; part of the mark of each process."""
        self.place = place
        """Where commands are started."""
        self.deadline = math.inf
        """The last that was sent; what starts later begins with it."""
        self._live: set[Kept] = set()

    def branch(self, *, place: Place | None = None) -> Keepers:
        """A set of its own that hears every heartbeat sent here, until it is discarded; at the same place, or another."""
        one = Keepers(
            starts=self.starts,
            margin_s=self.margin_s,
            directory=self.directory,
            place=place if place is not None else self.place,
        )
        self._live.add(one)
        one.deadline = self.deadline
        return one

    def send_heartbeat(self, deadline: float) -> None:
        """The worker's lease now ends at `deadline` on the monotonic clock. May be called from any thread."""
        self.deadline = deadline
        for kept in tuple(self._live):
            kept.send_heartbeat(deadline)

    async def stop(self, grace: timedelta | None = None) -> None:
        """End everything that still runs, all at once. Cannot be cancelled: nothing is left when it returns."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for kept in tuple(self._live):
                    tasks.start_soon(kept.stop, grace)

    def add(self, kept: Kept) -> None:
        """One more, until it is discarded."""
        self._live.add(kept)

    def discard(self, kept: Kept) -> None:
        """Nothing of it is left."""
        self._live.discard(kept)

    def __len__(self) -> int:
        return len(self._live)
