"""`/v1/reload`: read the fleet's files again, and say whether they are in effect."""

from __future__ import annotations

import anyio
from anyio import to_thread
from fastapi import APIRouter, Response

from nightherd.errors import ConfigInvalidError, RefusedError
from nightherd.model.access.role import Role
from nightherd.model.problem import Place, Problem
from nightherd.views.fleet.status import ConfigErrorRow, DaemonRow
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.problem import problem
from nightherd.web.requests import Nothing

PATIENCE_S = 60.0
STEP_S = 0.05

router = APIRouter(prefix="/v1/reload", tags=["fleet"])


@router.post("", responses=answers("daemon", DaemonRow, 409))
@needs(Role.ADMIN)
async def reload(site: OnSite, body: Nothing | None = None) -> Response:
    """Read the fleet's files again; the answer is the daemon as it is then. With errors (422) it keeps its configuration.

    `pending` is what the files give agents that waits for a person, who accepts it in the inbox.
    """
    before = await _daemon(site)
    site.reload()
    with anyio.move_on_after(PATIENCE_S) as waiting:
        after = before
        while _marks(after) == _marks(before):
            await anyio.sleep(STEP_S)
            after = await _daemon(site)
    if waiting.cancelled_caught:
        return problem(503, "not_yet", f"process {before['pid']} has not reloaded yet")
    if after["config_error"] is not None:
        raise ConfigInvalidError(_problems(after["config_error"]))
    return document("daemon", after, site.now())


async def _daemon(site: ApiContext) -> DaemonRow:
    """The process that serves; `RefusedError` when it is no daemon, which nothing reloads."""
    row = await to_thread.run_sync(site.daemon, site.now())
    if row is None:
        raise RefusedError("the process that serves this is no daemon; it does not reload")
    return row


def _marks(row: DaemonRow) -> tuple[str | None, ...]:
    """What changes with every reload."""
    error = row["config_error"]
    return (row["loaded_at"], None if error is None else error["at"])


def _problems(error: ConfigErrorRow) -> list[Problem]:
    """The errors of the files, each with its place in its message: a problem document has no other place for it."""
    return [
        Problem(
            place=Place(file=one["file"], line=one["line"], column=one["column"]),
            message=f"{one['file']}:{one['line']}:{one['column']}: {one['message']}",
            path=one.get("path", ""),
            hint=one.get("hint"),
        )
        for one in error["problems"]
    ]
