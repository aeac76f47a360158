"""Reader: the events of a journal that count, from anywhere, as far as asked."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nightherd.errors import JournalError
from nightherd.journal.blobs import BlobStore, os_code
from nightherd.journal.bodies import NOTE, restore
from nightherd.journal.fence import Fence
from nightherd.journal.lines import admit, blocks
from nightherd.journal.messages import seq_of_message
from nightherd.journal.place import seek, tail
from nightherd.model.journal.event import Event
from nightherd.ports import Findings

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A pipe in the place of a journal is not waited for: it cannot be read at a place, and that is said."""


def read(path: Path, *, after: int, blobs: BlobStore | None) -> Iterator[Event]:
    """Every event after `after` that stands in the file by the time its end is reached."""
    with opened(path) as descriptor:
        if descriptor is None:
            return
        fence, start = seek(descriptor, os.fstat(descriptor).st_size, after)
        for block in blocks(descriptor, start):
            events = admit(fence, block)
            if events and events[0].seq <= after:
                events = [event for event in events if event.seq > after]
            for event in events:
                yield restore(event, blobs) if event.extra and NOTE in event.extra else event


def last(path: Path, count: int, *, blobs: BlobStore | None) -> list[Event]:
    """The last `count` events; reads no more of the file than they need."""
    with opened(path) as descriptor:
        if descriptor is None or count < 1:
            return []
        _, events = tail(descriptor, os.fstat(descriptor).st_size, count)
        return [restore(event, blobs) for event in events]


def find_message(path: Path, message: int) -> int | None:
    """The number of the event that ends the message; None when no event does."""
    with opened(path) as descriptor:
        if descriptor is None or message < 1:
            return None
        return seq_of_message(descriptor, os.fstat(descriptor).st_size, message)


def examine(path: Path) -> Findings:
    """What reading everything comes across."""
    fence = Fence()
    with opened(path) as descriptor:
        if descriptor is not None:
            for block in blocks(descriptor, 0):
                admit(fence, block)
    return fence.findings()


@contextmanager
def opened(path: Path) -> Iterator[int | None]:
    """A handle for reading, None when there is no such file; the system's errors as ours."""
    try:
        descriptor = os.open(path, READ_FLAGS)
    except FileNotFoundError as error:
        if path.parent.is_symlink() and not path.parent.exists():
            # The journals are elsewhere, and that is away: they must not be taken for lost.
            raise read_failed(path.parent, error) from error
        yield None
        return
    except OSError as error:
        raise read_failed(path, error) from error
    try:
        yield descriptor
    except OSError as error:
        raise read_failed(path, error) from error
    finally:
        os.close(descriptor)


def read_failed(path: Path, error: OSError) -> JournalError:
    """The error for a journal that cannot be read."""
    is_link = error.errno == errno.ELOOP
    reason = "it is a link, and links are not followed" if is_link else error.strerror or error
    return JournalError(
        f"cannot read the journal {path}: {reason}",
        path=str(path),
        code=os_code(error),
    )
