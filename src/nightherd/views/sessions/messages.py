"""The messages of a session as documents: pages with short bodies, single ones whole, and what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict, cast

import msgspec

from nightherd.errors import NotFoundError
from nightherd.model.journal.event import ToolUseEvent
from nightherd.model.sessions.session import Session
from nightherd.model.text import counted
from nightherd.ports import Journals, StateReader
from nightherd.views.jobs.event_bodies import Cut, cut_long_texts
from nightherd.views.sessions.conversation import (
    HistoryPage,
    Spoken,
    Unreadable,
    count_messages,
    history_page,
    messages_between,
    segments_of,
    unreadable,
)
from nightherd.views.sessions.sessions import (
    MessageRow,
    SessionDocument,
    SessionView,
    message_document,
    session_document,
)


class UnreadableRow(TypedDict):
    """What is left out of a conversation because a journal is damaged: bad lines by byte offset, missing events."""

    job_id: str
    bytes: list[int]
    missing: int
    is_gone: bool


class SessionHistory(SessionDocument):
    """One session with a page of its messages; `cut_off` is an answer that was never finished."""

    history: list[MessageRow]
    cut_off: str | None
    unreadable: list[UnreadableRow]


def history_document(
    view: SessionView, page: HistoryPage, damage: Sequence[Unreadable]
) -> SessionHistory:
    """Return the session with a page of its messages."""
    return {
        **session_document(view),
        "history": [message_document(message) for message in page.messages],
        "cut_off": page.cut_off,
        "unreadable": [unreadable_row(one) for one in damage],
    }


def unreadable_row(one: Unreadable) -> UnreadableRow:
    """Return the damage of one journal as plain data."""
    return {
        "job_id": one.job_id,
        "bytes": list(one.offsets),
        "missing": one.missing,
        "is_gone": one.is_gone,
    }


class SessionMessage(MessageRow):
    """A message whose long texts are cut; `cut` names each, with its bytes and the path that has all of it."""

    cut: NotRequired[list[Cut]]


class MessagePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some messages of a conversation in a row, and what is around them."""

    messages: Sequence[SessionMessage]
    total: int
    """How many messages the conversation has."""
    first: int | None
    """The numbers of the first and the last message that the page is about; None for an empty page."""
    last: int | None
    next_before: int | None
    """None where the page begins with the first message."""
    next_after: int | None
    """None where it ends with the last."""
    cut_off: str | None = None
    """The beginning of an answer that was cut off after the last message."""
    unreadable: Sequence[UnreadableRow] = ()
    """Why messages of the page are missing."""


def message_page(
    reader: StateReader,
    journals: Journals,
    session: Session,
    *,
    limit: int,
    before: int | None = None,
    after: int | None = None,
) -> MessagePage:
    """Return the last `limit` messages, those before a message, or those after one; others are not read."""
    parts = segments_of(reader, journals, session)
    total = count_messages(parts)
    if after is not None:
        before = min(after + limit, total) + 1
        limit = max(before - after - 1, 0)
    page = (
        history_page(journals, parts, limit=limit, before=before)
        if limit
        else HistoryPage(messages=(), next_before=None)
    )
    is_empty = page.first > page.last
    damage = [] if is_empty or _is_complete(page) else unreadable(journals, parts, page)
    cut_off, _ = cut_long_texts(page.cut_off, "cut_off")
    return MessagePage(
        messages=[short_message(journals, session, one) for one in page.messages],
        total=total,
        first=None if is_empty else page.first,
        last=None if is_empty else page.last,
        next_before=None if is_empty else page.next_before,
        next_after=None if is_empty or page.last == total else page.last,
        cut_off=cut_off,
        unreadable=[unreadable_row(one) for one in damage],
    )


def _is_complete(page: HistoryPage) -> bool:
    """Whether every message of the page is there with all its lines. Where not, its journals are looked at."""
    return len(page.messages) == page.last - page.first + 1 and all(
        line.index in (None, place)
        for spoken in page.messages
        for place, line in enumerate(spoken.message.lines)
    )


def whole_message(
    reader: StateReader, journals: Journals, session: Session, number: int
) -> MessageRow:
    """Return one message with all that was said in it. `NotFoundError` when the session has no such message."""
    parts = segments_of(reader, journals, session)
    for spoken in messages_between(journals, parts, number, number, load_blobs=True):
        return message_document(spoken)
    total = count_messages(parts)
    if 1 <= number <= total:
        raise NotFoundError(f"message {number} of session {session.id} cannot be read")
    raise NotFoundError(
        f"there is no message {number}: session {session.id} has {counted(total, 'message')}"
    )


def short_message(journals: Journals, session: Session, spoken: Spoken) -> SessionMessage:
    """Return a message with every long text cut, and with references to what is cut or kept beside the journal."""
    document = cast("SessionMessage", message_document(spoken))
    found: list[tuple[str, int]] = []
    stored = _stored(journals, spoken)
    text, cuts = cut_long_texts(document["text"], "text")
    document["text"] = text
    beside = stored.pop("text", 0)
    if beside:
        found.append(("text", beside + (cuts[0][1] if cuts else len(text.encode()))))
    else:
        found += cuts
    for place, call in enumerate(document["calls"]):
        field = f"calls/{place}/input"
        call["input"], cuts = cut_long_texts(call["input"], field)
        found += [(field, stored[field])] if field in stored else cuts
    for place, result in enumerate(document["results"]):
        result["error"], cuts = cut_long_texts(result["error"], f"results/{place}/error")
        found += cuts
    if found:
        url = f"/v1/sessions/{session.id}/messages/{spoken.number}"
        document["cut"] = [{"field": field, "size": size, "url": url} for field, size in found]
    return document


def _stored(journals: Journals, spoken: Spoken) -> dict[str, int]:
    """Return the bytes of a message that are beside the journal: of its text, and of the input of each call."""
    sizes: dict[str, int] = {}
    calls = 0
    for line in spoken.message.lines:
        bodies: dict[str, Any] = dict(journals.stored_bodies(line))
        if isinstance(line, ToolUseEvent):
            if "input" in bodies:
                sizes[f"calls/{calls}/input"] = bodies["input"].size
            calls += 1
        for field in ("content", "result"):
            if field in bodies:
                sizes["text"] = sizes.get("text", 0) + bodies[field].size
    return sizes
