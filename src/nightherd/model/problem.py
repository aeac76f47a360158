"""A located problem: what is wrong, where in which file, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

MOST_PROBLEMS = 1_000
"""A file with more mistakes than this is not a configuration; the rest is not collected."""


class Severity(StrEnum):
    """Whether a problem stops the work or only has to be said."""

    ERROR = "error"
    BLOCKED = "blocked"
    """The agent it is about does not run; the others do."""
    NOTICE = "notice"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A position in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One finding about an input file.

    `path` is where it stands in the document's own terms (`agents.coder.session.mode`); `text` is the
    source line and `width` how many of its characters the caret line marks.
    """

    place: Place
    message: str
    path: str = ""
    hint: str | None = None
    text: str | None = None
    width: int = 1
    severity: Severity = Severity.ERROR
