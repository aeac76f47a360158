"""Torn: what a killed writer leaves at the end of a journal, and how it is kept and cut."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from nightherd.errors import FencedError, JournalError
from nightherd.journal.blobs import Blobs, os_code, sync_data, sync_path
from nightherd.journal.bodies import BODY_LIMIT, plain_line, seal
from nightherd.journal.codec import LINE_LIMIT, decode_line, read_back
from nightherd.journal.fence import Fence
from nightherd.journal.lines import BLOCK, blocks, complete_until, split
from nightherd.journal.place import tail
from nightherd.model.agents.agent import Durability
from nightherd.model.ids import ExecutionId
from nightherd.model.journal.event import VERSION, AssistantEvent, Event, SystemEvent, describe
from nightherd.model.journal.system import SystemSubtype, TornTail
from nightherd.next_step import Action, NextStep
from nightherd.ports import BadLine, BlobRef, Clock, Probe


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


FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC

replace: Callable[..., Event] = msgspec.structs.replace


class JournalFile:
    """A journal open for one execution, once per epoch. One thread at a time; `close` it when done."""

    def __init__(
        self,
        path: Path,
        *,
        epoch: int,
        execution: ExecutionId,
        blobs: Blobs,
        clock: Clock,
        durability: Durability,
        probe: Probe | None,
    ) -> None:
        self._path = path
        self._epoch = epoch
        self._execution = execution
        self._blobs = blobs
        self._now = clock.now
        self._is_synced_always = durability is Durability.FSYNC
        self._is_synced_ever = durability is not Durability.PROCESS
        self._probe = probe
        self._is_named = False
        self._is_fenced = False
        self._has_fragment = False
        self._fd = -1
        self._floor = 0
        self._seq = 0
        self._end = 0
        try:
            self._fd = os.open(path, FLAGS, 0o600)
        except OSError as error:
            raise self._failed("open", error) from error
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    @property
    def last_seq(self) -> int:
        """The sequence number of the last line that counts; 0 when there is none."""
        return self._seq

    def append(self, event: Event) -> Event:
        """Stamp `event`, write its line, return it as readers will see it."""
        if self._has_fragment:
            self._repair_end()
        line = plain_line(self._stamp(event))
        if line is None:
            written = self._place(event)
        else:
            written = read_back(line)
            end = self._write(line)
            offset = end - len(line)
            if offset == self._end:  # no other process has written: no need to look
                self._end = end
                self._seq += 1
                self._floor = self._epoch
            elif not self._catch_up(end, offset):
                written = self._place(event)
        if self._is_synced_always and not _can_wait(event):
            self._sync_lines()
        return written

    def sync(self) -> None:
        """Everything appended survives a power cut from here on."""
        if self._fd < 0:
            raise self._over()
        if not self._is_synced_ever:
            return
        self._sync_lines()
        if os.fstat(self._fd).st_nlink == 0:
            raise JournalError(
                f"the journal {self._path} was deleted while it was being written",
                path=str(self._path),
                code="ENOENT",
                next_step=NextStep(Action.CHECK_STATE),
            )

    def close(self) -> None:
        """Give the handle back. Closing twice is fine."""
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        # A journal that is no longer referenced closes its handle as a file would.
        self.close()

    def _begin(self) -> None:
        """Find where the journal stands, and repair its end if a killed writer left half a line there."""
        try:
            size = os.lseek(self._fd, 0, os.SEEK_END)
            if size == 0:
                return  # a new journal: there is nothing to find
            fence, _ = tail(self._fd, size, 1)
            self._end = complete_until(self._fd, size)
        except OSError as error:
            raise self._failed("read", error) from error
        self._floor, self._seq = fence.epoch, fence.seq
        if fence.epoch > self._epoch:
            raise self._lost(fence.epoch)
        if self._end < size:
            self._repair_end()

    def _repair_end(self) -> None:
        """Settle an unfinished line at the end: complete it if only its newline is missing, else cut it.

        The bytes are cut by blanking them, and only once a line of ours stands behind them. Shortening the
        file instead could take away a line that its writer finishes, and has acknowledged, meanwhile.
        """
        try:
            size = os.lseek(self._fd, 0, os.SEEK_END)
            start = max(self._end, complete_until(self._fd, size))
            if start < size and is_whole(self._fd, start, size):
                self._catch_up(self._write(b"\n"), -1)
            elif start < size:
                self._cut(start, size)
        except OSError as error:
            raise self._failed("repair", error) from error
        self._has_fragment = False

    def _cut(self, start: int, end: int) -> None:
        torn = describe_fragment(self._fd, start, end, self._blobs)
        self._secure(torn.blobs)
        self._reach("journal.before_mend")
        self._place(torn.event, prefix=b"\n")
        self._reach("journal.after_mend")
        # Any other byte here means that the line went on after all: its writer was only slow.
        if os.pread(self._fd, 1, end) == b"\n":
            blank(self._fd, start, end)
            self._reach("journal.after_blank")

    def _place(self, event: Event, *, prefix: bytes = b"") -> Event:
        """Write the event until it counts: each time others came first, under the next number."""
        while True:
            sealed = seal(self._stamp(event), self._blobs)
            read_back(sealed.line)
            self._secure(sealed.blobs)
            end = self._write(prefix + sealed.line)
            prefix = b""
            if self._catch_up(end, end - len(sealed.line)):
                return sealed.event

    def _sync_lines(self) -> None:
        self._reach("journal.before_sync")
        try:
            sync_data(self._fd)
            if not self._is_named:
                # A new file's name is in its directory; without that the bytes are safe but nowhere.
                sync_path(self._path.parent)
                self._is_named = True
        except OSError as error:
            raise self._failed("sync", error) from error
        self._reach("journal.after_sync")

    def _secure(self, blobs: tuple[BlobRef, ...]) -> None:
        """Blobs are on the disk before a line names them: after a power cut, a line that is left has its body."""
        if blobs and self._is_synced_ever:
            self._blobs.sync(blobs)

    def _catch_up(self, end: int, mine: int) -> bool:
        """Read what came up to `end` since the last look; whether the line at `mine` counts."""
        fence = Fence(epoch=self._floor, seq=self._seq)
        counts = False
        try:
            for block in blocks(self._fd, self._end, end):
                if isinstance(block, BadLine):
                    continue
                for offset, line in split(block[1], block[0]):
                    if fence.admit(line) and offset == mine:
                        counts = True
        except OSError as error:
            raise self._failed("read", error) from error
        self._floor, self._seq, self._end = fence.epoch, fence.seq, end
        if fence.epoch > self._epoch:
            self._is_fenced = True
            self.close()
            raise self._lost(fence.epoch)
        return counts

    def _stamp(self, event: Event) -> Event:
        return replace(
            event,
            v=VERSION,
            seq=self._seq + 1,
            epoch=self._epoch,
            timestamp=self._now(),
            execution=self._execution,
        )

    def _write(self, data: bytes) -> int:
        """Append the bytes; where they end. In one piece, unless the system takes them in several."""
        written = 0
        probe = self._probe
        if probe is not None:
            probe("journal.before_write")
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, data[written:])
            end = os.lseek(self._fd, 0, os.SEEK_CUR)
        except OSError as error:
            self._has_fragment = self._has_fragment or written > 0
            raise self._failed("write", error) from error
        if probe is not None:
            probe("journal.after_write")
        return end

    def _reach(self, point: str) -> None:
        if self._probe is not None:
            self._probe(point)

    def _lost(self, epoch: int) -> FencedError:
        return FencedError(
            f"{self._execution} (epoch {self._epoch}) no longer owns its journal: epoch {epoch} does"
        )

    def _over(self) -> JournalError | FencedError:
        if self._is_fenced:
            return self._lost(self._floor)
        return JournalError(f"the journal {self._path} is closed", path=str(self._path))

    def _failed(self, verb: str, error: OSError) -> JournalError | FencedError:
        if self._fd < 0 and verb != "open":
            return self._over()
        return JournalError(
            f"cannot {verb} the journal {self._path}: {error.strerror or error}",
            path=str(self._path),
            code=os_code(error),
        )


def _can_wait(event: Event) -> bool:
    """Whether nothing is continued from the line, which goes to the disk with the next one.

    One says where a job could continue from, the other that a model is about to be asked.
    """
    if isinstance(event, AssistantEvent):
        return event.partial is True and event.content is None
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.CHECKPOINT
