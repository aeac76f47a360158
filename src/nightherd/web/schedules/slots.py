"""`/v1/slots`: what became of the due times of schedules, and those to come, for a strip in time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from nightherd.errors import InvalidValueError, NotFoundError, UsageError
from nightherd.model.access.role import Role
from nightherd.model.filters import parse_since
from nightherd.model.schedules.jobs import find_schedule
from nightherd.model.units import parse_duration
from nightherd.ports import StateReader
from nightherd.views.schedules.rows import StripDocument
from nightherd.views.schedules.schedules import ScheduleView, list_views, view_of
from nightherd.views.schedules.strip import strip_document, strip_of
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.wiring.machine import is_at_work

WEEK = "7d"
LONGEST = timedelta(days=62)
FEW, MOST = 50, 100
"""Schedules in one answer: unless said otherwise, and at most."""
NEXT_AFTER: Mapping[str, Any] = {"next_after": str | None}

router = APIRouter(prefix="/v1/slots", tags=["schedules"])

Instant = Annotated[str, Query(max_length=40)]
Name = Annotated[str | None, Query(max_length=500)]


@router.get("", responses=answers("schedule_strip", StripDocument, 404, beside=NEXT_AFTER))
@needs(Role.VIEWER)
async def list_slots(
    site: OnSite,
    since: Instant = WEEK,
    until: Instant = WEEK,
    schedule: Name = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = FEW,
    after: Name = None,
) -> Response:
    """The slots of schedules from `since` to `until`, with the jobs and runs that they made, and those to come.

    Both are instants or spans: `since=7d` is a week ago, `until=7d` in a week. A schedule has at most 500 slots of
    each kind. `limit` is the number of schedules; `after` is the `next_after` of the page before.
    """
    now = site.context.clock.now()
    span = _span(since, until, now)

    def look(reader: StateReader) -> tuple[StripDocument, str | None]:
        views = _views(site, reader, schedule, now)
        if after is not None:
            ids = [view.id for view in views]
            if after not in ids:
                raise NotFoundError(f"there is no schedule {after!r} any more; begin again")
            views = views[ids.index(after) + 1 :]
        page = views[:limit]
        strips = [strip_of(reader, view, *span, now) for view in page]
        return strip_document(strips, *span), page[-1].id if len(views) > limit else None

    data, next_after = await site.ask(look)
    return document("schedule_strip", data, now, next_after=next_after)


def _views(
    site: ApiContext, reader: StateReader, reference: str | None, now: datetime
) -> list[ScheduleView]:
    fleet = site.fleet()
    if reference is None:
        return list_views(reader, fleet, is_at_work, now)
    owner, schedule = find_schedule(fleet.scheduled, reference)
    return [view_of(reader, owner, schedule, is_at_work, now)]


def _span(since: str, until: str, now: datetime) -> tuple[datetime, datetime]:
    """The two instants; `UsageError` when there is nothing between them, or too much."""
    try:
        first, last = parse_since(since, now), _ahead(until, now)
    except OverflowError:
        raise UsageError("since and until are too far apart") from None
    if not first < last:
        raise UsageError("until must be later than since")
    if last - first > LONGEST:
        raise UsageError(f"since and until are more than {LONGEST.days} days apart")
    return first, last


def _ahead(text: str, now: datetime) -> datetime:
    """The instant that a span from `now`, or a date and time, names."""
    try:
        return now + parse_duration(text)
    except InvalidValueError:
        return parse_since(text, now)
