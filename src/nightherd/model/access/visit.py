"""Visit: when a person looked at the dashboard, and when they did so the time before.

A visit lasts as long as the person comes back within `PATIENCE`. Only then does the next one begin, so what
happened since the visit before stays to be seen, however often a page is loaded again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

PATIENCE = timedelta(minutes=30)
"""How long a person may be away within one visit."""
GRAIN = timedelta(minutes=1)
"""How much later a person has to be seen for that to be recorded."""


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A row of one person's visits: the one that lasts or was the last, and the end of the one before."""

    person: str
    began_at: datetime
    seen_at: datetime
    """When the person was last seen."""
    visited_at: datetime | None = None
    """When the visit before this one ended; None for the first."""


class MarkVisit(msgspec.Struct, frozen=True, kw_only=True):
    """Note that a person looks at the dashboard."""

    person: str
    at: datetime


def visit_at(known: Visit | None, person: str, at: datetime) -> Visit:
    """Return the visit of a person who looks at `at`: the one that lasts, or a new one."""
    if known is None:
        return Visit(person=person, began_at=at, seen_at=at)
    if at - known.seen_at > PATIENCE:
        return Visit(person=person, began_at=at, seen_at=at, visited_at=known.seen_at)
    return replace(known, seen_at=max(at, known.seen_at))
