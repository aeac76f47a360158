"""Reading files: what is not a regular file is refused, the last whole line is read from the end, a checksum proves a line.

A line's checksum is its last field: a CRC-32 of everything before it. A line of an older nightherd has none and counts as
intact. Readers that do not know the field skip it.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Without O_NONBLOCK a pipe would be waited for; to a file it means nothing."""


def open_regular(path: Path, *, follows_links: bool = True) -> BinaryIO:
    """The file for reading; `OSError` when there is none, or something that is no file.

    Not to follow links is for an absolute path that was checked, in a directory where an agent may put a link into
    its way meanwhile: `OSError` where any part of it is one.
    """
    handle = os.open(path, FLAGS) if follows_links else _open_without_links(path)
    try:
        check_regular(handle, path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _open_without_links(path: Path) -> int:
    directory = open_directory(path.parent)
    try:
        return os.open(path.name or ".", FLAGS | os.O_NOFOLLOW, dir_fd=directory)
    finally:
        os.close(directory)


SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_directory(path: Path) -> int:
    """A descriptor of a directory, for paths relative to it; `OSError` where any part of the absolute `path` is a link."""
    directory = os.open("/", SEARCH)
    try:
        for part in path.parts[1:]:
            inner = os.open(part, SEARCH, dir_fd=directory)
            os.close(directory)
            directory = inner
    except BaseException:
        os.close(directory)
        raise
    return directory


def read_regular(path: Path) -> bytes:
    """All that the file holds; `OSError` as above."""
    with open_regular(path) as file:
        return file.read()


def check_regular(handle: int, path: Path) -> None:
    """`OSError` when what was opened is no file."""
    mode = os.fstat(handle).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))


TAIL_BYTES = 4 * 1024


def last_line(file: BinaryIO, reach: int = TAIL_BYTES) -> tuple[int, bytes]:
    """Return where the last whole line ends, and the line without its end; 0 and nothing when there is none.

    What follows the last line end is not a line. `reach` is how many bytes are read at first.
    """
    size = file.seek(0, os.SEEK_END)
    while True:
        start = max(0, size - reach)
        file.seek(start)
        tail = file.read(size - start)
        end = tail.rfind(b"\n")
        begin = tail.rfind(b"\n", 0, max(end, 0))
        if begin >= 0 or start == 0:
            break
        reach *= 8
    return (0, b"") if end < 0 else (start + end + 1, tail[begin + 1 : end])


FIELD = b',"crc":"'
DIGITS = 8
LENGTH = len(FIELD) + DIGITS + len(b'"}')


def with_checksum(line: bytes) -> bytes:
    """Return the JSON object `line` (no line end) with its checksum as the last field."""
    body = line[:-1]
    return b'%b,"crc":"%08x"}' % (body, crc32(body))


def is_intact(line: bytes) -> bool:
    """Whether the line, with or without its end, is what was written; True when it has no checksum."""
    line = line.removesuffix(b"\n")
    body, tail = line[:-LENGTH], line[-LENGTH:]
    if not tail.startswith(FIELD):
        return True
    return tail[len(FIELD) :] == b'%08x"}' % crc32(body)
