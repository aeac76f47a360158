"""Deciding about visits."""

from __future__ import annotations

from nightherd.model.access.visit import GRAIN, MarkVisit, Visit, visit_at
from nightherd.model.change import Answer, Applied
from nightherd.model.decisions.rows import Rows


def mark(change: MarkVisit, rows: Rows) -> Answer:
    """The person's visit, if it is a new one or lasts noticeably longer than is on record."""
    known = rows.get(Visit, change.person)
    visit = visit_at(known, change.person, change.at)
    is_known = known is not None and known.began_at == visit.began_at
    if is_known and known is not None and visit.seen_at - known.seen_at < GRAIN:
        return Applied(rows=())
    return Applied(rows=(visit,))
