"""Visits: a person looks at the dashboard."""

from __future__ import annotations

from datetime import datetime

from nightherd.model.access.visit import MarkVisit
from nightherd.ports import StateWriter


async def mark_visit(person: str, state: StateWriter, *, at: datetime) -> None:
    """Record that the person looks at `at`; within a visit nothing is lost of what happened since the one before."""
    await state.apply([MarkVisit(person=person, at=at)])
