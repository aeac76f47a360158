"""`/v1/stream`: one stream of everything a page shows, which a client continues where it left off."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from nightherd.model.access.role import Role
from nightherd.views.streams.cursor import LONGEST, parse_stream_cursor
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import EventStream, refusals
from nightherd.web.problem import problem
from nightherd.web.streams.stream_follower import StreamFollower
from nightherd.web.streams.stream_topics import parse_topics

STREAM = "text/event-stream"
LONGEST_TOPICS = 4_096
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "A stream of events", "content": {STREAM: {"schema": {"type": "string"}}}},
    **refusals(406),
}

router = APIRouter(prefix="/v1", tags=["stream"])


@router.get("/stream", responses=ANSWERS, response_class=Response)
@needs(Role.VIEWER)
async def stream(
    site: OnSite,
    request: Request,
    topics: Annotated[str, Query(max_length=LONGEST_TOPICS)],
    after: Annotated[str, Query(max_length=LONGEST)] = "",
    last_event_id: Annotated[str | None, Header(max_length=LONGEST)] = None,
) -> Response:
    """Rows that change and events of jobs, as one stream. `Accept` must name `text/event-stream`.

    `topics`, apart by commas: `jobs`, `inbox`, `runs`, `sessions`, `schedules`, `agents`, `run:RUN`, `job:JOB`, or
    `job:JOB@SEQ` for the events after one. `Last-Event-ID` (or `after`) is the `id` of the last event that was
    received, also with other topics than before: nothing is left out and nothing comes twice.
    """
    wanted = parse_topics(topics)
    place = last_event_id or after
    cursor = parse_stream_cursor(place) if place else None
    if STREAM not in request.headers.get("accept", ""):
        return problem(406, "not_acceptable", f"this is a stream; send Accept: {STREAM}")
    follower = StreamFollower(site.changes, site.tails, site.ask, wanted, cursor)
    return EventStream(follower.follow(), site.counters)
