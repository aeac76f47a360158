"""`/v1/inbox`: what waits for a person, and answers to it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from nightherd.engine.operations.requests import Answer
from nightherd.errors import ForbiddenError
from nightherd.model.access.role import Role
from nightherd.model.inbox.item import InboxQuery, ItemId, ItemKind, Verdict
from nightherd.model.inbox.token import WEB_PERSON
from nightherd.model.limits.limits import kept_limits
from nightherd.ports import StateReader
from nightherd.views.people.inbox import (
    find_item_id,
    item_document,
    item_row,
    list_about,
    list_inbox,
    show_item,
)
from nightherd.views.people.inbox_rows import ItemDocument, ItemRow
from nightherd.web.access.caller import FromCaller, needs, require
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import NEXT, answers, document
from nightherd.web.operations import FromSender, perform_for
from nightherd.web.requests import NewAnswer

MOST = 1_000
LARGEST = 2**53
VIA = "api"
VIA_DASHBOARD = "dashboard"
"""Where an answer came from: a program, or a browser that logged in."""

router = APIRouter(prefix="/v1/inbox", tags=["inbox"])


@router.get("", responses=answers("inbox", list[ItemRow], beside=NEXT))
@needs(Role.VIEWER)
async def list_items(
    site: OnSite,
    kind: ItemKind | None = None,
    agent: Annotated[str | None, Query(max_length=200)] = None,
    about: Annotated[str | None, Query(max_length=200)] = None,
    status: Literal["pending", "decided"] = "pending",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 20,
    before: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """What waits for a person, or with `status=decided` what does not any more; the newest first.

    `about` is the whole id of a job or run: only what it asks, or what is asked about it.
    """
    query = InboxQuery(
        is_pending=status == "pending", kind=kind, agent=agent, before=before, limit=limit
    )

    def look(reader: StateReader) -> tuple[list[ItemRow], int | None]:
        page = list_inbox(reader, query) if about is None else list_about(reader, about, query)
        return [item_row(item) for item in page.items], page.next_before

    rows, next_before = await site.ask(look)
    return document("inbox", rows, site.context.clock.now(), next_before=next_before)


@router.get("/{item}", responses=answers("inbox_item", ItemDocument, 404, 409))
@needs(Role.VIEWER)
async def show(site: OnSite, item: str) -> Response:
    """One item with all that it asks. An id, a unique prefix of one, `@last`, or the id of its job."""
    return await _item_answer(site, await _find(site, item))


@router.post("/{item}/answers", responses=answers("inbox_item", ItemDocument, 404, 409))
@needs(Role.OPERATOR)
async def answer(
    site: OnSite, sender: FromSender, caller: FromCaller, item: str, body: NewAnswer
) -> Response:
    """Answer an item. The first answer that decides counts; a later one is refused (409) with who decided.

    Who answers is the name of the token. `seen_hash` is the `hash` of the item as the person was shown it: an item
    that has changed since is not answered.
    """
    if body.verdict is Verdict.ACCEPT:
        require(caller, Role.ADMIN)
    if body.verdict is Verdict.ACCEPT and caller.name == WEB_PERSON:
        raise ForbiddenError(
            "agents can read the web token; accepting a fleet file needs a named token"
        )
    request = Answer(
        item_id=await _find(site, item),
        verdict=body.verdict,
        by=caller.name,
        via=VIA if caller.session_id is None else VIA_DASHBOARD,
        text=body.text,
        input=body.input,
        seen_hash=body.seen_hash,
        limits=kept_limits(body.limits),
    )
    answered = await perform_for(site, sender, request)
    return await _item_answer(site, answered.item.id)


async def _item_answer(site: ApiContext, item_id: ItemId) -> Response:
    artifacts = site.context.artifacts
    data = await site.ask(lambda reader: item_document(show_item(reader, item_id, artifacts)))
    return document("inbox_item", data, site.context.clock.now())


async def _find(site: ApiContext, reference: str) -> ItemId:
    return await site.ask(lambda reader: find_item_id(reader, reference))
