"""An override: what somebody says about a schedule, and who."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """One of these is said."""

    by: str
    enabled: bool | None = None
    rule: str | None = None
    reset: bool = False
