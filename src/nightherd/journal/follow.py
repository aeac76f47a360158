"""Follow: the events of a journal as they are written, across writers that are killed.

`Follower.poll` never waits, so asynchronous callers can wait in their own way; `follow` is the loop around
it for callers that wait with a function.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from nightherd.journal.blobs import BlobStore
from nightherd.journal.bodies import restore
from nightherd.journal.fence import Fence
from nightherd.journal.lines import admit, blocks, end_of
from nightherd.journal.place import seek
from nightherd.journal.reader import READ_FLAGS, read_failed
from nightherd.model.journal.event import Event
from nightherd.ports import Findings, Wait

INTERVAL = 0.02
"""Seconds between two looks at a journal that has nothing new."""


class Follower:
    """A place in a journal that moves on with each `poll`. A context manager: it holds a file open."""

    def __init__(self, path: Path, *, after: int = 0, blobs: BlobStore | None = None) -> None:
        self._path = path
        self._blobs = blobs
        self._fd = -1
        self._fence = Fence()
        self._offset = 0
        self._size = 0
        self._seen = 0
        self._is_lost = True
        self.after = after
        """The last event handed out; a follower begun there continues where this one stands."""

    def poll(self) -> list[Event]:
        """The next events there are, at most a block of them; empty when there is nothing new by now."""
        try:
            while self._has_more():
                if self._is_lost:
                    self._fence, self._offset = seek(self._fd, self._size, self.after)
                    self._is_lost = False
                block = next(blocks(self._fd, self._offset), None)
                if block is None:
                    self._seen = self._size
                    break
                counted = admit(self._fence, block)
                fresh = [restore(event, self._blobs) for event in counted if event.seq > self.after]
                self._offset = end_of(block)
                if fresh:
                    self.after = fresh[-1].seq
                    return fresh
        except BaseException as error:
            # The fence has seen lines that were not handed out.
            self._rewind()
            if isinstance(error, OSError):
                raise read_failed(self._path, error) from error
            raise
        return []

    def findings(self) -> Findings:
        """What it has come across so far."""
        return self._fence.findings()

    def close(self) -> None:
        """Give the file back; the next `poll` would open it again."""
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _has_more(self) -> bool:
        status = self._open()
        if status is not None and status.st_nlink == 0:
            self.close()  # deleted, or replaced: whatever has that name now is another file
            self._rewind()
            status = self._open()
        if status is None:
            return False
        if status.st_size < self._offset:
            self._rewind()
        self._size = status.st_size
        return self._size != self._seen

    def _open(self) -> os.stat_result | None:
        """Open the file if it is not open, and look at it; None when there is none."""
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, READ_FLAGS)
            except FileNotFoundError:
                return None
        return os.fstat(self._fd)

    def _rewind(self) -> None:
        """Find the place again by its number, at the next poll."""
        self._offset = self._seen = 0
        self._is_lost = True


def follow(follower: Follower, wait: Wait, *, interval: float = INTERVAL) -> Iterator[Event]:
    """Each event as it comes, until `wait(interval)`, called whenever there is none, says stop."""
    with follower:
        while True:
            while events := follower.poll():
                yield from events
            if wait(interval):
                return
