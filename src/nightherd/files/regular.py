"""Opening files for reading: what is not a regular file is refused; the last whole line is read from the end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Without O_NONBLOCK a pipe would be waited for; to a file it means nothing."""


def open_regular(path: Path) -> BinaryIO:
    """The file for reading; `OSError` when there is none, or something that is no file."""
    handle = os.open(path, FLAGS)
    try:
        check_regular(handle, path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


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
