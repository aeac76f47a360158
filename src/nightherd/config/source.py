"""Reading a configuration file: a bounded amount of UTF-8 from a regular file, or a plain reason why not."""

from __future__ import annotations

import os
import re
import stat

from nightherd.config.node import Source, Spot, problem_at
from nightherd.model.problem import Problem

LARGEST_FILE_BYTES = 10_000_000
LINE_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
FORBIDDEN = re.compile(
    r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""What YAML allows in a stream, a byte order mark in the middle excepted."""

REASONS = {
    FileNotFoundError: "there is no such file",
    IsADirectoryError: "it is a directory, not a file",
    NotADirectoryError: "a part of its path is not a directory",
    PermissionError: "it may not be read (permission denied)",
}


class UnreadableError(Exception):
    """The file itself cannot be had; the message says why. Whoever named the file locates it."""


def read_bytes(path: str) -> bytes:
    """The bytes of the regular file at `path`, or `UnreadableError` with a reason in plain words."""
    if "\0" in path:
        raise UnreadableError("its name has a NUL character")
    try:
        info = os.stat(path)  # noqa: PTH116 (the path stays text: names may be any length or shape)
        if stat.S_ISDIR(info.st_mode):
            raise IsADirectoryError
        if not stat.S_ISREG(info.st_mode):
            raise UnreadableError("it is not a regular file")
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        reason = REASONS.get(type(error)) or (error.strerror or "it cannot be read").lower()
        if isinstance(error, FileNotFoundError) and os.path.islink(path):  # noqa: PTH114
            reason = "it is a symbolic link to a file that is not there"
        raise UnreadableError(reason) from error
    if len(content) > LARGEST_FILE_BYTES:
        raise UnreadableError("it is larger than 10 MB, the most a configuration file may be")
    return content


def decode(path: str, content: bytes) -> tuple[Source, str] | Problem:
    """The text of a file that was read, or the place of what is not text in it."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", errors="replace")
        spot = end_of(path, before)
        return problem_at(spot, f"not UTF-8 text: byte 0x{content[error.start]:02x}")
    forbidden = FORBIDDEN.search(text)
    if forbidden is not None:
        spot = end_of(path, text[: forbidden.start()])
        return problem_at(
            spot, f"the character U+{ord(forbidden[0]):04X} may not stand in a text file"
        )
    return Source(path, tuple(LINE_BREAK.split(text))), text


def end_of(path: str, text: str) -> Spot:
    """The spot right behind `text`, in a source that quotes no lines: what follows may be anything."""
    lines = LINE_BREAK.split(text)
    return Spot(Source(path, ()), len(lines), len(lines[-1]) + 1)
