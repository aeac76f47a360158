"""What a process printed, in bounded memory: the beginning and the end, and how much is missing between."""

from __future__ import annotations

from nightherd.model.secret import NO_SECRETS, Secrets
from nightherd.model.secret_filter import SecretFilter

OUTPUT_LIMIT_BYTES = 48 * 1024
"""Kept of one call's output: enough to read, and below what the journal moves to a file of its own."""


class BoundedOutput:
    """Takes any number of bytes, masks `secrets`, and keeps at most `limit` of them, half from each end."""

    def __init__(self, limit: int = OUTPUT_LIMIT_BYTES, secrets: Secrets = NO_SECRETS) -> None:
        self._filter = SecretFilter(secrets)
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        """Take `chunk`, which follows all that was added before."""
        self._take(self._filter.feed(chunk))

    def _take(self, chunk: bytes) -> None:
        room = self._head_limit - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        surplus = len(self._tail) - self._tail_limit
        if surplus > 0:
            del self._tail[:surplus]
            self._dropped += surplus

    @property
    def is_cut(self) -> bool:
        """Whether anything is left out."""
        self._take(self._filter.finish())
        return self._dropped > 0

    @property
    def tail(self) -> bytes:
        """What is kept of the end."""
        self._take(self._filter.finish())
        return bytes(self._tail)

    def text(self) -> str:
        """What was kept as text; bytes that are not UTF-8 become U+FFFD, what is left out is counted."""
        self._take(self._filter.finish())
        if not self._dropped:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = _whole_end(self._head), _whole_start(self._tail)
        left_out = self._dropped + len(self._head) - len(head) + len(self._tail) - len(tail)
        note = f"\n[... {left_out:,} bytes left out ...]\n"
        return head.decode(errors="replace") + note + tail.decode(errors="replace")


def _whole_end(data: bytearray) -> bytearray:
    """`data` without a character that the cut at its end went through."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)
            return data[:-back] if needed > back else data
    return data


def _whole_start(data: bytearray) -> bytearray:
    """`data` without the rest of a character that the cut at its start went through."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
