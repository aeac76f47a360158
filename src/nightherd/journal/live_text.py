"""Live text as a file: `jobs/<job-id>.text`, one JSON line per piece, there only while an answer comes in.

The writer collects pieces and writes them at most every `INTERVAL_S`, the first ones of an answer after `FIRST_S`:
people wait for those. An answer that is quicker than that costs no file at all. The file is emptied when the answer is on record, and removed when its execution ends.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from nightherd.decoding import json_decoder
from nightherd.model.journal.live_text import TextDelta
from nightherd.ports import CallLater, Timer

FIRST_S = 0.01
"""The time from the first piece of an answer to its line."""
INTERVAL_S = 0.1
"""The longest time from a piece to its line, and the shortest between two writes."""

WRITE_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
LARGEST = 16 * 1024 * 1024
"""Bytes that are read of a file; an answer is far shorter."""

_decoder: msgspec.json.Decoder[TextDelta] = json_decoder(TextDelta)


class LiveTextFile:
    """Writes the live text of one execution. Text that cannot be written is not shown, and nothing else fails."""

    def __init__(self, path: Path, call_later: CallLater) -> None:
        self._path = path
        self._call_later = call_later
        self._fd = -1
        self._has_bytes = False
        self._pending: list[TextDelta] = []
        self._timer: Timer | None = None

    def append(self, delta: TextDelta) -> None:
        """Write the piece within `INTERVAL_S`, together with those that come meanwhile."""
        self._pending.append(delta)
        if self._timer is None:
            delay_s = INTERVAL_S if self._has_bytes else FIRST_S
            self._timer = self._call_later(delay_s, self._write)

    def clear(self) -> None:
        """Empty the file, and forget what was to be written."""
        self._pending.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._has_bytes:
            self._has_bytes = False
            with suppress(OSError):
                os.ftruncate(self._fd, 0)

    def close(self) -> None:
        """Remove the file, unless another execution has made another one in its place."""
        self.clear()
        if self._fd >= 0:
            with suppress(OSError):
                if os.path.samestat(os.fstat(self._fd), self._path.stat(follow_symlinks=False)):
                    self._path.unlink()
        self.leave()

    def leave(self) -> None:
        """Close the file as it is."""
        self._has_bytes = False
        self.clear()
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _write(self) -> None:
        self._timer = None
        pieces, self._pending = self._pending, []
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in joined(pieces))
        with suppress(OSError):
            if self._fd < 0:
                self._fd = os.open(self._path, WRITE_FLAGS, 0o600)
            self._has_bytes = True
            while lines:
                lines = lines[os.write(self._fd, lines) :]


def joined(deltas: list[TextDelta]) -> list[TextDelta]:
    """Return the pieces with neighbours of one part put together."""
    groups: list[list[TextDelta]] = []
    for delta in deltas:
        if groups and (groups[-1][-1].part, groups[-1][-1].after) == (delta.part, delta.after):
            groups[-1].append(delta)
        else:
            groups.append([delta])
    return [
        msgspec.structs.replace(group[0], text="".join(one.text for one in group))
        for group in groups
    ]


class TextFollower:
    """A place in the live text of a job; it finds its way when the file is emptied or replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._offset = 0
        self._place = (0, 0, 0)
        """Epoch, part and characters of the last piece that was given."""

    def poll(self) -> list[TextDelta]:
        """Return what is new; a file that cannot be read has nothing new."""
        try:
            return self._poll()
        except OSError:
            self.close()
            return []

    def close(self) -> None:
        """Close the file; the next `poll` would open it again."""
        descriptor, self._fd = self._fd, -1
        self._offset = 0
        if descriptor >= 0:
            os.close(descriptor)

    def _poll(self) -> list[TextDelta]:
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, READ_FLAGS)
            except FileNotFoundError:
                return []
        status = os.fstat(self._fd)
        if status.st_size < self._offset:
            self._offset = 0
        found: list[TextDelta] = []
        if status.st_size > self._offset:
            data = os.pread(self._fd, LARGEST, self._offset)
            deltas, size = parse(data)
            if (
                not size and b"\n" in data
            ):  # emptied and written again: this is the middle of a line
                self._offset = 0
                deltas, size = parse(os.pread(self._fd, LARGEST, 0))
            self._offset += size
            found = [one for delta in deltas if (one := self._new_of(delta)) is not None]
        if status.st_nlink == 0:
            self.close()  # another execution writes another file
        return found

    def _new_of(self, delta: TextDelta) -> TextDelta | None:
        """Return what of the piece was not given yet."""
        epoch, part, known = self._place
        if (delta.epoch, delta.part) < (epoch, part):
            return None
        if (delta.epoch, delta.part) > (epoch, part):
            known = 0
        end = delta.at + len(delta.text)
        if end <= known or delta.at > known:
            return None
        self._place = (delta.epoch, delta.part, end)
        return msgspec.structs.replace(delta, at=known, text=delta.text[known - delta.at :])


def parse(data: bytes) -> tuple[list[TextDelta], int]:
    """Return the pieces of whole lines up to the first that is none, and how many bytes they take."""
    deltas: list[TextDelta] = []
    size = 0
    for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
        try:
            deltas.append(_decoder.decode(line))
        except (ValueError, RecursionError):
            break
        size += len(line)
    return deltas, size


def read_text(path: Path) -> list[TextDelta]:
    """Return the pieces in the file; none when there is no file, or nothing in it can be read."""
    try:
        descriptor = os.open(path, READ_FLAGS)
    except OSError:
        return []
    try:
        return parse(os.pread(descriptor, LARGEST, 0))[0]
    except OSError:
        return []
    finally:
        os.close(descriptor)
