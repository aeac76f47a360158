"""Turns: what came in of one place is taken in the order of arrival, one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class Turns:
    """A queue for each key."""

    def __init__(self) -> None:
        self._last: dict[str, anyio.Event] = {}

    @asynccontextmanager
    async def turn(self, key: str | None) -> AsyncIterator[None]:
        """Wait for those with the same key that came before; None waits for nobody."""
        if key is None:
            yield
            return
        before, mine = self._last.get(key), anyio.Event()
        self._last[key] = mine
        try:
            if before is not None:
                await before.wait()
            yield
        finally:
            mine.set()
            if self._last.get(key) is mine:
                del self._last[key]
