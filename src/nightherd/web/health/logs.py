"""`/v1/logs`: the operator log in pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Response

from nightherd.errors import NotFoundError
from nightherd.model.access.role import Role
from nightherd.model.log import LogPage, LogPlace
from nightherd.views.health.logs import LogRow, log_row
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import answers, document
from nightherd.wiring.stores import log_names, read_log_page

FEW, MOST = 100, 500
NEXT_PLACE: Mapping[str, Any] = {"next_before": str | None}

router = APIRouter(prefix="/v1/logs", tags=["fleet"])


@router.get("", responses=answers("logs", list[LogRow], 404, beside=NEXT_PLACE))
@needs(Role.VIEWER)
async def list_lines(
    site: OnSite,
    agent: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = FEW,
    before: Annotated[str | None, Query(max_length=60)] = None,
) -> Response:
    """Lines of nightherd's own log, newest first: starts, ends and failures. `before` is the `next_before` of a page.

    `agent` is an agent, or `nightherd` for the daemon itself.
    """
    place = None if before is None else LogPlace.of(before)
    is_declared = agent in site.fleet().agents

    def look() -> LogPage:
        page = read_log_page(site.state_dir, agent, place, limit)
        is_empty = agent is not None and not page.lines and not is_declared
        if is_empty and agent not in log_names(site.state_dir):
            raise NotFoundError(f"nothing has been logged about {agent!r} yet")
        return page

    page = await to_thread.run_sync(look, limiter=site.log_readers)
    rows = [site.context.secrets.mask(log_row(line)) for line in page.lines]
    next_before = None if page.next is None else str(page.next)
    return document("logs", rows, site.now(), next_before=next_before)
