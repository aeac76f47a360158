"""Watching the fleet's files: whenever they look different, or somebody asks, they are loaded anew."""

from __future__ import annotations

import anyio
from anyio import to_thread

from nightherd.daemon.fleet_files import FleetFiles, Loading, stamp_of

LOOK_S = 1.0
"""How often the files are looked at."""


class Watch:
    """The files of one fleet, and what they were last found to say."""

    def __init__(self, files: FleetFiles, loading: Loading) -> None:
        self._files = files
        self._loading = loading
        self._hangup = anyio.Event()

    def ask(self) -> None:
        """Load them now, whatever they look like."""
        self._hangup.set()

    async def next(self) -> Loading:
        """Wait for a change; what loading came to then."""
        while True:
            with anyio.move_on_after(LOOK_S):
                await self._hangup.wait()
            is_asked, self._hangup = self._hangup.is_set(), anyio.Event()
            now = await to_thread.run_sync(stamp_of, self._loading.files)
            if is_asked or now != self._loading.stamp:
                self._loading = await to_thread.run_sync(self._files.load, self._loading)
                return self._loading
