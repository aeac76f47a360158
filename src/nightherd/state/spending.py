"""Sums of what was used: the questions readers and decisions share."""

from __future__ import annotations

from collections.abc import Sequence

from nightherd.db.connection import Value
from nightherd.model.limits import Used
from nightherd.state.rows import SqliteRows


def spent(rows: SqliteRows, day: str | None, agent: str | None, schedule: str | None) -> Used:
    """What was used on a day, or ever: by an agent and for a schedule, where they are named.

    What jobs of others used below an agent's is its own too.
    """
    if day is None:
        return _used(rows.values("spent_ever"))
    found = _used(rows.values("spent_on_day", day, agent, schedule))
    if agent is None:
        return found
    return found + _used(rows.values("spent_below_on_day", day, agent, schedule))


def _used(found: Sequence[tuple[Value, ...]]) -> Used:
    ((cost, turns, tokens),) = found
    return Used(spend=int(str(cost)), turns=int(str(turns)), tokens=int(str(tokens)))


def used_below(rows: SqliteRows, job_id: str, besides: str) -> Used:
    """What all jobs below a job have used and set aside, one of them left out; `spawns` counts them."""
    ((cost, turns, tokens, count),) = rows.values("used_below", job_id, besides)
    return Used(
        spend=int(str(cost)), turns=int(str(turns)), tokens=int(str(tokens)), spawns=int(str(count))
    )
