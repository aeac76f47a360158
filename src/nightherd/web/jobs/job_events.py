"""`/v1/jobs/JOB/events`: a job's events as pages, as a stream, and the whole bodies of single ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from nightherd.errors import InvalidValueError, UsageError
from nightherd.model.access.role import Role
from nightherd.model.ids import JobId
from nightherd.ports import Journals, StateReader
from nightherd.views.jobs.event_bodies import Body, EventRow, event_row, read_body, short_event
from nightherd.views.jobs.event_pages import EventPage, page_after, page_around, page_before
from nightherd.views.jobs.jobs import find_job_id, get_job
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import (
    JSON,
    EventStream,
    document,
    envelope,
    refusals,
)
from nightherd.web.downloads import FILE, TEXT, attachment, media_of

MOST_EVENTS = 1_000
LARGEST = 2**53
STREAM = "text/event-stream"
BESIDE = {"first_seq": int | None, "last_seq": int, "has_before": bool, "has_after": bool}
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page of events, or a stream of them",
        "content": {
            JSON: {"schema": envelope("events", list[EventRow], BESIDE)},
            STREAM: {"schema": {"type": "string"}},
        },
    },
    204: {"description": "The job has ended; no more events follow"},
    **refusals(404, 409),
}
Number = Annotated[int | None, Query(ge=0, le=LARGEST)]

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is: at most one of the three is given."""

    after: Number = None
    before: Number = None
    around: Number = None

    def page(self, journals: Journals, job_id: JobId, limit: int) -> EventPage:
        """Return the page; the first one where nothing is given. `UsageError` when several are."""
        if sum(number is not None for number in (self.after, self.before, self.around)) > 1:
            raise UsageError("after, before and around each choose a page; use only one")
        if self.before is not None:
            return page_before(journals, job_id, self.before, limit)
        if self.around is not None:
            return page_around(journals, job_id, self.around, limit)
        return page_after(journals, job_id, self.after or 0, limit)


@router.get("/{job}/events", responses=EVENTS)
@needs(Role.VIEWER)
async def events(
    site: OnSite,
    request: Request,
    job: str,
    place: Annotated[Place, Depends()],
    limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = 200,
    bodies: Literal["full", "short"] = "full",
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Response:
    """A job's events as its journal has them: a page, or, asked for as `text/event-stream`, a stream.

    A page has the events after, before or around the number of an event; `before` may lie beyond the end, for
    the last page. With `bodies=short` every text over 8 KB is cut to its first 2 KB, and `cut` of the event names
    its `field`, its `size` and the `url` of the whole text.

    The stream continues across restarts of workers and ends with the job. `id` is the event's number;
    `Last-Event-ID` (or `after`) is where it continues. Nothing is left out and nothing comes twice. Bodies
    that are kept beside the journal are named, not sent.
    """
    if STREAM in request.headers.get("accept", ""):
        if place.before is not None or place.around is not None:
            raise UsageError("a stream begins after an event; use after or Last-Event-ID")
        return await _stream(site, job, place.after or 0, last_event_id)
    journals = site.context.journals

    def look(reader: StateReader) -> tuple[EventPage, list[EventRow]]:
        job_id = find_job_id(reader, job)
        page = place.page(journals, job_id, limit)
        if bodies == "short":
            return page, [short_event(journals, job_id, event) for event in page.events]
        return page, [event_row(event) for event in page.events]

    page, rows = await site.ask(look)
    return document(
        "events",
        rows,
        site.context.clock.now(),
        first_seq=page.first_seq,
        last_seq=page.last_seq,
        has_before=page.has_before,
        has_after=page.has_after,
    )


async def _stream(site: ApiContext, job: str, after: int, last_event_id: str | None) -> Response:
    place = after if last_event_id is None else _number(last_event_id)
    known = await site.ask(lambda reader: get_job(reader, find_job_id(reader, job)))
    if known.is_terminal and not await site.tails.has_more(known.id, place):
        return Response(status_code=204)
    return EventStream(site.tails.follow(known.id, place), site.counters)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise InvalidValueError(f"Last-Event-ID {text!r} is not the number of an event")
    return int(text)


@router.get("/{job}/events/{seq}/body", responses=FILE, response_class=Response)
@needs(Role.VIEWER)
async def event_body(
    site: OnSite,
    job: str,
    seq: Annotated[int, Path(ge=1, le=LARGEST)],
    field: Annotated[str | None, Query(max_length=2_000)] = None,
) -> Response:
    """A whole field of an event, as an attachment: a text as `text/plain`, any other value as JSON.

    `field` is as in `cut`: `content`, or a path into a value such as `input/content`; `full_output` is all that a
    tool printed. Without `field` it is the whole event.
    """
    journals = site.context.journals

    def look(reader: StateReader) -> tuple[JobId, Body]:
        job_id = find_job_id(reader, job)
        return job_id, read_body(journals, job_id, seq, field)

    job_id, body = await site.ask(look)
    media = {"text": TEXT, "json": JSON}.get(body.kind) or media_of(body.data)
    headers = attachment(f"{job_id}-{seq}", media)
    return Response(body.data, media_type=media, headers=headers)
