"""`/v1/work`: the issues that schedules took, how their sources do, and giving an issue back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response

from nightherd.engine.operations.work import release_issue
from nightherd.engine.operations.work_locks import find_lock, find_source, unlock_issue
from nightherd.engine.operations.work_locks import list_locks as find_locks
from nightherd.errors import RefusedError
from nightherd.model.access.role import Role
from nightherd.model.work.item import WorkItem
from nightherd.model.work.source import SourceState
from nightherd.ports import StateReader
from nightherd.views.work.work import (
    UnlockedRow,
    WorkItemRow,
    WorkLockRow,
    WorkSourceRow,
    every_source,
    find_item,
    list_items,
    unlocked_row,
    work_item_row,
    work_lock_row,
    work_source_row,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import answers, document
from nightherd.web.jobs.jobs import MOST
from nightherd.web.operations import FromSender
from nightherd.web.requests import ReleasedIssue, RemovedLock

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
    """Give an issue back and forget its attempts. 409 while its job has not ended, and without `force` while it is settled."""
    await sender.must_be_person("give an issue back")
    context = site.context
    item = await site.ask(lambda reader: find_item(reader, body.issue))
    released = await release_issue(item.id, context.state, context.clock, is_forced=body.force)
    return document("work_item", work_item_row(released), context.clock.now())


@router.get("/locks", responses=answers("work_locks", list[WorkLockRow], 409))
@needs(Role.VIEWER)
async def list_locks(site: OnSite) -> Response:
    """Which fleet has which issue, asked of GitHub now."""
    context = site.context
    sources = every_source(site.fleet().agents.values())
    held = await find_locks(sources, context)
    rows = [work_lock_row(one.source.id, one.lock, one.item) for one in held]
    return document("work_locks", rows, context.clock.now())


@router.post("/unlock", responses=answers("work_lock", UnlockedRow, 404, 409))
@needs(Role.ADMIN)
async def unlock(site: OnSite, sender: FromSender, body: RemovedLock) -> Response:
    """Remove the lock of a fleet that is gone for good; its issue is made ready again. 409 for a lock of this fleet."""
    await sender.must_be_person("remove a lock")
    context = site.context
    source, number = find_source(every_source(site.fleet().agents.values()), body.issue)
    held = await find_lock(source, number, context)
    if held.lock.lock != body.lock:
        raise RefusedError(f"issue {held.issue} has another lock by now")
    unlocked = await unlock_issue(held, context)
    return document(
        "work_lock",
        unlocked_row(source.id, held.lock, is_ready=unlocked.is_ready),
        context.clock.now(),
    )
