"""`/v1/work`: the issues that schedules took, how their sources do, and giving an issue back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response

from nightherd.engine.operations.work import release_issue
from nightherd.model.access.role import Role
from nightherd.model.work.item import WorkItem
from nightherd.model.work.source import SourceState
from nightherd.ports import StateReader
from nightherd.views.work.work import (
    WorkItemRow,
    WorkSourceRow,
    find_item,
    list_items,
    work_item_row,
    work_source_row,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import answers, document
from nightherd.web.jobs.jobs import MOST
from nightherd.web.operations import FromSender
from nightherd.web.requests import ReleasedIssue

router = APIRouter(prefix="/v1/work", tags=["fleet"])


@router.get(
    "", responses=answers("work", list[WorkItemRow], beside={"sources": list[WorkSourceRow]})
)
@needs(Role.VIEWER)
async def list_work(
    site: OnSite,
    is_open: Annotated[bool, Query(alias="open")] = False,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 20,
) -> Response:
    """The issues that schedules took, those that changed last first; with `open` only those that are taken now."""

    def look(reader: StateReader) -> tuple[Sequence[WorkItem], Sequence[SourceState]]:
        return list_items(reader, limit, is_open=is_open), reader.list_work_sources()

    items, sources = await site.ask(look)
    return document(
        "work",
        [work_item_row(item) for item in items],
        site.context.clock.now(),
        sources=[work_source_row(one) for one in sources],
    )


@router.post("/release", responses=answers("work_item", WorkItemRow, 404, 409))
@needs(Role.OPERATOR)
async def release(site: OnSite, sender: FromSender, body: ReleasedIssue) -> Response:
    """Give an issue back and forget its attempts. 409 while its job has not ended."""
    await sender.must_be_person("give an issue back")
    context = site.context
    item = await site.ask(lambda reader: find_item(reader, body.issue))
    released = await release_issue(item.id, context.state, context.clock)
    return document("work_item", work_item_row(released), context.clock.now())
