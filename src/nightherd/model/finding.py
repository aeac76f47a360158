"""Finding: what an examination of a state directory came across."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and will not for ever."""
    PROBLEM = "problem"
    """Something is wrong now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found; `remedy` says what mends it, `is_fixable` whether `doctor --fix` does."""

    check: str
    level: Level
    message: str
    path: str | None = None
    job_id: str | None = None
    remedy: str | None = None
    row: tuple[str, str] | None = None
    """Table and key of the row it is about."""
    is_fixable: bool = False
    is_fixed: bool = False
