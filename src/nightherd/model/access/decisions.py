"""Deciding about browser sessions."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.access.browser_session import (
    AddBrowserSession,
    BrowserSession,
    EndBrowserSessions,
)
from nightherd.model.change import Answer, Applied, Refused, Why
from nightherd.model.decisions.rows import Rows


def add(change: AddBrowserSession, rows: Rows) -> Answer:
    """Add the session; its id is never used twice."""
    if rows.get(BrowserSession, change.session.id) is not None:
        return Refused(why=Why.DUPLICATE, message="this browser session exists already")
    return Applied(rows=(change.session,))


def end(change: EndBrowserSessions, rows: Rows) -> Answer:
    """End the sessions that are not ended yet."""
    known = [rows.get(BrowserSession, id) for id in change.ids]
    ended = tuple(
        replace(one, ended_at=change.at)
        for one in known
        if one is not None and one.ended_at is None
    )
    return Applied(rows=ended)
