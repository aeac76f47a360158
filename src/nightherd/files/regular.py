"""Opening a regular file: a pipe, a directory or a device in its place is refused."""

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
