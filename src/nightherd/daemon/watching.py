"""Watching the fleet's files: whenever they look different, or somebody asks, they are loaded anew."""

from __future__ import annotations

import threading

import anyio
from anyio import to_thread

from nightherd.daemon.fleet_files import FleetFiles, Loading, stamp_of

LOOK_S = 1.0
"""How often the files are looked at."""


class Watch:
    """The files of one fleet, and what they were last found to say. For one who waits at a time."""

    def __init__(self, files: FleetFiles, loading: Loading) -> None:
        self._files = files
        self._loading = loading
        self._hangup = threading.Event()
        self._limiter = anyio.CapacityLimiter(1)

    def ask(self) -> None:
        """Load them now, whatever they look like."""
        self._hangup.set()

    async def next(self) -> Loading:
        """Wait for a change; what loading came to then."""
        try:
            # Files may be slow to look at, and the event loop need not wake up for what has not changed.
            await to_thread.run_sync(
                self._wait_for_change, abandon_on_cancel=True, limiter=self._limiter
            )
        except BaseException:
            self._hangup.set()  # nobody waits any more: the thread ends as well
            raise
        self._hangup.clear()
        self._loading = await to_thread.run_sync(self._files.load, self._loading)
        return self._loading

    def _wait_for_change(self) -> None:
        while not self._hangup.wait(LOOK_S):
            if stamp_of(self._loading.files) != self._loading.stamp:
                return
