"""What callers may use of the bridge: an agent in a container can open connections to it, and must not exhaust the worker."""

from __future__ import annotations

import io
import socket
import threading
import time
from typing import Any

import msgspec


class BridgeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one bridge."""

    connections: int = 64
    """At the same time; further ones wait. Each takes a thread and a descriptor of the worker, and a call another thread."""
    head_bytes: int = 64 * 1024
    """Of one request, before its message."""
    message_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 8 * 1024 * 1024
    """Of all messages that are being read or carried out; further ones wait. Python's objects take about 20 times as much."""
    message_s: float = 30.0
    """From the first byte of a request to its last, and for the first request of a connection to begin."""
    idle_s: float = 900.0
    """Between two requests of a connection."""
    answer_s: float = 60.0
    """For an answer to be read."""
    alive_s: float = 10.0
    """How often a caller that waits for a call gets a sign of life."""


class TooLongError(ValueError):
    """Raised when a caller sends more than it may."""


class Incoming(io.RawIOBase):
    """What arrives on a connection: until `deadline` on the monotonic clock, and no more than `allowance` bytes.

    `TimeoutError` and `TooLongError` say which was passed.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self.deadline = 0.0
        self.allowance = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read what is there into `buffer`; 0 at the end."""
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the request did not come in time")
        if self.allowance <= 0:
            raise TooLongError("the request is too long")
        self._connection.settimeout(left_s)
        count = self._connection.recv_into(memoryview(buffer)[: self.allowance])
        self.allowance -= count
        return count


class ByteBudget:
    """An amount of memory that several threads share."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._changed = threading.Condition()

    def take(self, size: int, wait_s: float) -> bool:
        """Take `size` bytes once there are as many; False when there are not after `wait_s`."""
        with self._changed:
            if not self._changed.wait_for(lambda: size <= self._left, wait_s):
                return False
            self._left -= size
            return True

    def give(self, size: int) -> None:
        """Give back what was taken."""
        with self._changed:
            self._left += size
            self._changed.notify_all()
