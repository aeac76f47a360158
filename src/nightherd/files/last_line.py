"""The last whole line of a file, read from its end."""

from __future__ import annotations

import os
from typing import BinaryIO

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
