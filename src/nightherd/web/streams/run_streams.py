"""The events of a run over HTTP: as pages, and as a stream that a client continues where it left off."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import anyio
import msgspec
from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response

from nightherd.errors import NightherdError
from nightherd.model.workflows.run import RunId
from nightherd.views.runs.event_rows import RunEventRow
from nightherd.views.runs.events import RunEvent, RunEventFollower, parse_cursor
from nightherd.web.api_context import ApiContext
from nightherd.web.documents import JSON, EventStream, document, envelope, refusals
from nightherd.web.streams.tails import HEARTBEAT_S, STILL_THERE

STREAM = "text/event-stream"
LAST_EVENT_ID = "last-event-id"
LOOK_AGAIN_S = 0.05
LONGEST_WAIT_S = 0.25
"""While nothing happens, how long it may take until the next look."""
EVENTS_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page of events, or a stream of them",
        "content": {
            JSON: {"schema": envelope("run_events", list[RunEventRow], {"next_after": str})},
            STREAM: {"schema": {"type": "string"}},
        },
    },
    204: {"description": "The run has ended; no more events follow"},
    **refusals(404, 409),
}


async def answer_events(
    site: ApiContext, request: Request, run_id: RunId, after: str, limit: int
) -> Response:
    """A page of the run's events after the cursor, or a stream of them when the request asks for one."""
    is_stream = STREAM in request.headers.get("accept", "")
    place = request.headers.get(LAST_EVENT_ID, after) if is_stream else after
    cursor = parse_cursor(place)
    follower = RunEventFollower(run_id, cursor, site.open_feed(), site.context.journals)
    await site.ask(follower.begin)
    if is_stream:
        if follower.is_over:
            return Response(status_code=204)
        return EventStream(_stream(follower, site.run_readers), site.counters)
    try:
        events = await to_thread.run_sync(_page, follower, limit, limiter=site.run_readers)
    finally:
        follower.close()
    data = [{"id": one.cursor, "type": one.kind, "data": one.data} for one in events]
    last = events[-1].cursor if events else place
    return document("run_events", data, site.context.clock.now(), next_after=last)


def _page(follower: RunEventFollower, limit: int) -> list[RunEvent]:
    events: list[RunEvent] = []
    while len(events) < limit and (more := follower.poll()):
        events += more
    return events[:limit]


async def _stream(
    follower: RunEventFollower, limiter: CapacityLimiter
) -> AsyncGenerator[bytes, None]:
    """What is to be sent until the run has ended; now and then, a comment that the stream is still there.

    A ledger or journal that cannot be read ends the stream; the client comes back to where it was.
    """
    wait, last = LOOK_AGAIN_S, anyio.current_time()
    try:
        while True:
            events = await to_thread.run_sync(follower.poll, limiter=limiter)
            if events:
                yield frames_of(events)
                wait, last = LOOK_AGAIN_S, anyio.current_time()
            elif follower.is_over:
                return
            else:
                if anyio.current_time() - last >= HEARTBEAT_S:
                    last = anyio.current_time()
                    yield STILL_THERE
                await anyio.sleep(wait)
                wait = min(wait * 1.2, LONGEST_WAIT_S)
    except NightherdError:
        return
    finally:
        follower.close()


def frames_of(events: Sequence[RunEvent]) -> bytes:
    """Events as server-sent events; the id of each is the cursor to come back with."""
    return b"".join(
        b"id: %s\nevent: %s\ndata: %s\n\n"
        % (one.cursor.encode(), one.kind.encode(), msgspec.json.encode(one.data))
        for one in events
    )
