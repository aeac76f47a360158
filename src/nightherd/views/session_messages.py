"""The messages of a session as documents: a page of them, and what of the record cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from nightherd.views.conversation import HistoryPage, Unreadable
from nightherd.views.sessions import (
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
