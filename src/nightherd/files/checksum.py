"""Line checksums: the last field of a JSON line is a CRC-32 of everything before it.

A line of an older nightherd has none and counts as intact. Readers that do not know the field skip it.
"""

from __future__ import annotations

from zlib import crc32

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
