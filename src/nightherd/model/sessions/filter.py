"""Filters of sessions: what `session list QUERY` and `GET /v1/sessions?q=` mean, and whether a session fits."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from nightherd.model.filters import has_words, parse_filter
from nightherd.model.sessions.session import (
    Session,
    SessionFilter,
    SessionMode,
    SessionQuery,
    SessionStatus,
)

KEYS = frozenset({"agent", "status", "mode", "cost", "since", "until", "schedule", "channel"})
NO_FILTER = SessionFilter()


def parse_session_filter(text: str, now: datetime) -> SessionFilter:
    """Return the filter that `text` spells, or `InvalidValueError` with the column of its first error."""
    terms = parse_filter(text, KEYS)
    costs = terms.costs()
    return SessionFilter(
        agents=terms.texts("agent"),
        statuses=terms.choices("status", SessionStatus),
        modes=terms.choices("mode", SessionMode),
        schedules=terms.texts("schedule"),
        channels=terms.texts("channel"),
        least_cost=None if costs.is_all else costs.least,
        most_cost=None if costs.is_all else costs.most,
        since=terms.instant("since", now, max),
        until=terms.instant("until", now, min),
        words=terms.words,
    )


def session_filter_of(query: SessionQuery) -> SessionFilter | None:
    """Return all that a query asks for as one filter; None when no session can fit."""
    filter = query.filter or NO_FILTER
    if query.agent is not None:
        if filter.agents and query.agent not in filter.agents:
            return None
        filter = replace(filter, agents=(query.agent,))
    if query.status is not None:
        if filter.statuses and query.status not in filter.statuses:
            return None
        filter = replace(filter, statuses=(query.status,))
    if query.mode is not None:
        if filter.modes and query.mode not in filter.modes:
            return None
        filter = replace(filter, modes=(query.mode,))
    return filter


def session_fits(session: Session, filter: SessionFilter) -> bool:
    """Whether a list with the filter shows the session, by the status that is on record."""
    schedules = (session.schedule, f"{session.agent}/{session.schedule}")
    texts = (session.id, session.agent, session.name, session.channel_id, session.schedule)
    return (
        (not filter.agents or session.agent in filter.agents)
        and (not filter.statuses or session.status in filter.statuses)
        and (not filter.modes or session.mode in filter.modes)
        and (not filter.schedules or any(name in filter.schedules for name in schedules))
        and (not filter.channels or session.channel_id in filter.channels)
        and (filter.least_cost is None or session.cost_microusd >= filter.least_cost)
        and (filter.most_cost is None or session.cost_microusd <= filter.most_cost)
        and (filter.since is None or session.created_at >= filter.since)
        and (filter.until is None or session.created_at < filter.until)
        and has_words(filter.words, texts)
    )
