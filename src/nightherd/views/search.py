"""Search: what matches in prompts, answers, tool calls and session names, as rows."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from nightherd.errors import InvalidValueError
from nightherd.model.index.search import Hit, SearchPage
from nightherd.model.text import utc_text
from nightherd.model.units import parse_duration


class HitRow(TypedDict):
    """An event, or the name of a session, that matched."""

    kind: str
    at: str
    agent: str
    job_id: str | None
    session_id: str | None
    seq: int | None
    message: int | None
    snippet: str
    ranges: list[list[int]]


def hit_row(hit: Hit) -> HitRow:
    """A hit as lists give it; `ranges` are the characters of `snippet` that matched."""
    return HitRow(
        kind=hit.kind,
        at=utc_text(hit.at),
        agent=hit.agent,
        job_id=hit.job_id,
        session_id=hit.session_id,
        seq=hit.seq,
        message=hit.message,
        snippet=hit.snippet.text,
        ranges=[[start, end] for start, end in hit.snippet.ranges],
    )


def hit_rows(page: SearchPage) -> list[HitRow]:
    """The hits of a page."""
    return [hit_row(hit) for hit in page.hits]


def since_text(text: str, now: datetime) -> datetime:
    """The instant that an age such as `2d`, or a date and time, names. A time without a zone is in that of `now`."""
    try:
        return now - parse_duration(text)
    except (InvalidValueError, OverflowError):
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValueError(
            f"{text!r} is neither an age such as 2h nor a date and time such as 2026-11-15T03:00Z"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=now.tzinfo)
