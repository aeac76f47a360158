"""`/v1/costs`: what jobs used in a period, in groups, and how fast limits are used up."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from nightherd.model.access.role import Role
from nightherd.views.costs.costs import (
    GROUPS,
    MOST_GROUPS,
    CostsDocument,
    CostsRequest,
    costs_document,
    read_zone,
    show_costs,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import answers, document
from nightherd.wiring.machine import local_zone

When = Annotated[str | None, Query(max_length=40)]
"""A time as people write it."""
ZoneName = Annotated[str | None, Query(min_length=1, max_length=60)]

router = APIRouter(prefix="/v1", tags=["costs"])


@router.get("/costs", responses=answers("costs", CostsDocument))
@needs(Role.VIEWER)
async def costs(
    site: OnSite,
    by: Annotated[str, Query(min_length=1, max_length=100)] = CostsRequest().by,
    since: When = None,
    until: When = None,
    agent: Annotated[str | None, Query(max_length=200)] = None,
    job: Annotated[str | None, Query(max_length=200)] = None,
    tz: ZoneName = None,
    limit: Annotated[int, Query(ge=1, le=MOST_GROUPS)] = GROUPS,
) -> Response:
    """Money, tokens, turns and jobs by any of `day`, `agent`, `model`, `schedule` and `workflow`, with commas.

    `since` and `until` are `7d` (so many days, with today), `24h`, a date or a time; a week without them. Days are those
    of the time zone `tz`, of the machine without one. The `limit` groups with the highest cost are named, the rest is
    added up in `others`. `job` is the whole id of one job. `pending_jobs` says how many jobs have something that is
    not counted yet.
    """
    now = site.context.clock.now()
    zone = read_zone(tz, local_zone())
    request = CostsRequest(by=by, since=since, until=until, agent=agent, job=job, limit=limit)
    fleet = site.fleet()
    view = await site.ask(lambda reader: show_costs(site.costs, reader, fleet, request, zone, now))
    return document("costs", costs_document(view), now)
