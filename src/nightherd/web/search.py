"""`/v1/search`: what was said and done in all jobs, by words."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from nightherd.model.access.role import Role
from nightherd.model.index.search import PAGE, SearchQuery
from nightherd.model.index.search_terms import LONGEST
from nightherd.views.search import HitRow, hit_rows, since_text
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import NEXT, answers, document

MOST = 100
LARGEST = 2**53
BESIDE = {**NEXT, "pending_jobs": int | None}

router = APIRouter(prefix="/v1", tags=["search"])


@router.get("/search", responses=answers("hits", list[HitRow], beside=BESIDE))
@needs(Role.VIEWER)
async def search(
    site: OnSite,
    q: Annotated[str, Query(min_length=1, max_length=LONGEST)],
    agent: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[str | None, Query(max_length=40)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = PAGE,
    before: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """Prompts, answers, tool inputs and results, errors, summaries and session names that have all words of `q`.

    Newest first; `before` is the `next_before` of the page before. `"..."` is a phrase, `word*` a beginning. `since` is an
    age such as `2d`, or a date and time. `pending_jobs` says how many jobs have something that is not indexed yet.
    """
    now = site.context.clock.now()
    query = SearchQuery(
        text=q,
        agent=agent,
        since=None if since is None else since_text(since, now),
        before=before,
        limit=limit,
    )
    page = await site.ask(lambda _: site.searches.search(query))
    return document(
        "hits",
        hit_rows(page),
        now,
        next_before=page.next_before,
        pending_jobs=page.pending_jobs,
    )
