"""`/v1/sessions/SESSION/tree`, `/messages` and `/compare`: families, conversations and differences of sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from nightherd.engine.sessions.import_turns import ensure_turns_imported
from nightherd.errors import UsageError
from nightherd.model.access.role import Role
from nightherd.model.sessions.session import Session
from nightherd.ports import StateReader
from nightherd.views.sessions.conversation import count_messages, segments_of
from nightherd.views.sessions.family import SessionComparison, compare, comparison_document
from nightherd.views.sessions.graph import SessionFamily, show_family
from nightherd.views.sessions.messages import (
    MessagePage,
    SessionMessage,
    UnreadableRow,
    message_page,
    whole_message,
)
from nightherd.views.sessions.sessions import MessageRow, find_session, get_session
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.workspaces import LARGEST_PATCH
from nightherd.wiring.machine import is_at_work

LARGEST = 2**53
MOST_SESSIONS, MOST_JOBS, MOST_MESSAGES, MOST_FILES = 500, 50, 200, 5_000
BESIDE = {
    "total": int,
    "first": int | None,
    "last": int | None,
    "next_before": int | None,
    "next_after": int | None,
    "cut_off": str | None,
    "unreadable": list[UnreadableRow],
}
Place = Annotated[int | None, Query(ge=0, le=LARGEST)]

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


class ComparedSessions(SessionComparison):
    """Where two sessions part, and both since, in bounded size."""

    files_left_out: int
    is_patch_left_out: bool


@router.get("/{session}/tree", responses=answers("session_family", SessionFamily, 404, 409))
@needs(Role.VIEWER)
async def tree(
    site: OnSite,
    session: str,
    limit: Annotated[int, Query(ge=1, le=MOST_SESSIONS)] = 200,
    jobs: Annotated[int, Query(ge=0, le=MOST_JOBS)] = 10,
) -> Response:
    """The family of a session as a graph: a node for each session with its newest `jobs`, an edge for each fork.

    Nodes come oldest first. Of a family of more than `limit` sessions those that are nearest to this one are there.
    """
    now = site.context.clock.now()
    journals = site.context.journals

    def look(reader: StateReader) -> SessionFamily:
        found = find_session(reader, session)
        return show_family(
            reader, journals, found, is_at_work, now, most_sessions=limit, most_jobs=jobs
        )

    return document("session_family", await site.ask(look), now)


@router.get(
    "/{session}/messages",
    responses=answers("session_messages", list[SessionMessage], 404, 409, beside=BESIDE),
)
@needs(Role.VIEWER)
async def messages(
    site: OnSite,
    session: str,
    before: Place = None,
    after: Place = None,
    limit: Annotated[int, Query(ge=1, le=MOST_MESSAGES)] = 50,
) -> Response:
    """A page of the conversation, first to last: the last messages, those before a message, or those after one.

    Messages are numbered from 1 over all jobs of the session and what it was forked from. A text of more than 8 KB
    is cut to its first 2 KB; `cut` of the message names its `field`, its `size` and the `url` of the whole message.
    """
    if before is not None and after is not None:
        raise UsageError("before and after each choose a page; use only one")
    found = await whole_session(site, session)
    journals = site.context.journals

    def look(reader: StateReader) -> MessagePage:
        row = get_session(reader, found.id)
        return message_page(reader, journals, row, limit=limit, before=before, after=after)

    page = await site.ask(look)
    return document(
        "session_messages",
        page.messages,
        site.now(),
        total=page.total,
        first=page.first,
        last=page.last,
        next_before=page.next_before,
        next_after=page.next_after,
        cut_off=page.cut_off,
        unreadable=page.unreadable,
    )


@router.get(
    "/{session}/messages/{number}", responses=answers("session_message", MessageRow, 404, 409)
)
@needs(Role.VIEWER)
async def message(
    site: OnSite, session: str, number: Annotated[int, Path(ge=1, le=LARGEST)]
) -> Response:
    """One message of the conversation with all that was said in it."""
    found = await whole_session(site, session)
    journals = site.context.journals
    row = await site.ask(
        lambda reader: whole_message(reader, journals, get_session(reader, found.id), number)
    )
    return document("session_message", row, site.now())


@router.get(
    "/{session}/compare/{other}",
    responses=answers("session_comparison", ComparedSessions, 404, 409),
)
@needs(Role.VIEWER)
async def compare_sessions(site: OnSite, session: str, other: str, patch: bool = False) -> Response:
    """Where two sessions part, what each has come to since, and which files differ from the first to the second.

    `files` is null where one of them has no workspace. With `patch=true` it has the git patch, unless more than
    8 MiB of files differ.
    """
    one, two = await whole_session(site, session), await whole_session(site, other)
    now, context = site.now(), site.context

    def look(reader: StateReader) -> ComparedSessions:
        rows = [get_session(reader, found.id) for found in (one, two)]
        compared = compare(reader, context.journals, rows[0], rows[1], is_at_work, now)
        paths, text, is_large = None, None, False
        if compared.files is not None:
            trees = (compared.files.store, compared.files.before, compared.files.after)
            beside = compared.files.other
            paths = site.snapshots.changed_paths(*trees, other=beside)
            is_large = patch and site.snapshots.changed_bytes(*trees, other=beside) > LARGEST_PATCH
            if patch and not is_large:
                text = site.snapshots.patch(*trees, other=beside)
        left_out = max(len(paths or ()) - MOST_FILES, 0)
        shown = None if paths is None else paths[:MOST_FILES]
        described: ComparedSessions = {
            **comparison_document(compared, shown, text),
            "files_left_out": left_out,
            "is_patch_left_out": is_large,
        }
        masked: ComparedSessions = context.secrets.mask(described)
        return masked

    return document("session_comparison", await site.ask(look), now)


async def whole_session(site: ApiContext, reference: str) -> Session:
    """Return the session; what the transcript of an imported one says is on record then."""

    def look(reader: StateReader) -> tuple[Session, bool]:
        found = find_session(reader, reference)
        if found.imported_from is None:
            return found, True
        parts = segments_of(reader, site.context.journals, found)
        return found, count_messages(parts) >= found.message_count

    found, is_whole = await site.ask(look)
    return found if is_whole else await ensure_turns_imported(found, site.context)
