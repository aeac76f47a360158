"""Limits of logins: recorded when a job hits one, kept until it resets, then jobs start one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from nightherd.model.decisions.rows import Rows
from nightherd.model.limits.login import RECOVERY, STAGGER, LoginLimit, stopping


def limit_in_the_way(ids: Sequence[str], at: datetime, rows: Rows) -> LoginLimit | None:
    """Return the limit because of which a job may not start at `at`."""
    return stopping((rows.get(LoginLimit, one) for one in ids), at)


def login_in(ids: Sequence[str]) -> str | None:
    """Return the login whose limits these are (`model.login.limits_that_stop`)."""
    return ids[0] if ids else None


def after_start(ids: Sequence[str], at: datetime, rows: Rows) -> Iterator[LoginLimit]:
    """Yield the limits that have just reset, with the time of the next start: not all jobs come back at once."""
    for one in ids:
        limit = rows.get(LoginLimit, one)
        if limit is not None and limit.until <= at < limit.until + RECOVERY:
            yield replace(limit, next_start_at=at + STAGGER)


def recorded(limit: LoginLimit, rows: Rows) -> LoginLimit:
    """Return the limit as it stands once it was hit: of two times the later one counts."""
    known = rows.get(LoginLimit, limit.id)
    return known if known is not None and known.until >= limit.until else limit


def lifted(ids: Sequence[str], at: datetime, rows: Rows) -> Iterator[LoginLimit]:
    """Yield the limits that are over at `at` because a person says so."""
    for one in ids:
        limit = rows.get(LoginLimit, one)
        if limit is not None and limit.next_start_at > at:
            yield replace(limit, until=min(limit.until, at), next_start_at=at)
