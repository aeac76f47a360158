"""Torn: what a killed writer leaves at the end of a journal, and how it is kept and cut."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator

import msgspec

from nightherd.journal.blobs import BlobRef, Blobs
from nightherd.journal.bodies import BODY_LIMIT
from nightherd.journal.codec import LINE_LIMIT, decode_line
from nightherd.journal.lines import BLOCK
from nightherd.model.journal.event import SystemEvent, describe
from nightherd.model.journal.system import TornTail
from nightherd.ports import BadLine


class Fragment(msgspec.Struct, frozen=True, kw_only=True):
    """A torn line as an event, and the blobs that event needs."""

    event: SystemEvent
    blobs: tuple[BlobRef, ...] = ()


def is_whole(descriptor: int, start: int, end: int) -> bool:
    """Whether the unfinished line lacks nothing but its newline."""
    if end - start > LINE_LIMIT:
        return False
    return not isinstance(decode_line(os.pread(descriptor, end - start, start), start), BadLine)


def describe_fragment(descriptor: int, start: int, end: int, blobs: Blobs) -> Fragment:
    """The `torn_tail` event that keeps the bytes from `start` to `end`.

    Up to 64 KiB are kept in the event; of more, the event keeps the first 64 KiB and names, as `blob`, the
    blob that has them all.
    """
    head = os.pread(descriptor, min(end - start, BODY_LIMIT), start)
    event = describe(TornTail(offset=start, fragment=head))
    if end - start <= BODY_LIMIT:
        return Fragment(event=event)
    ref = blobs.put(_chunks(descriptor, start, end))
    extra = {**(event.extra or {}), "blob": msgspec.to_builtins(ref)}
    return Fragment(event=msgspec.structs.replace(event, extra=extra), blobs=(ref,))


def blank(descriptor: int, start: int, end: int) -> None:
    """Overwrite the bytes with spaces, which readers of JSON lines pass over."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    # While O_APPEND is set, every write goes to the end, whatever offset it names.
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~os.O_APPEND)
    try:
        while start < end:
            start += os.pwrite(descriptor, b" " * min(BLOCK, end - start), start)
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)


def _chunks(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (data := os.pread(descriptor, min(BLOCK, end - start), start)):
        yield data
        start += len(data)
