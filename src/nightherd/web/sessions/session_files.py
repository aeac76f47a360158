"""`/v1/sessions/import`: sessions that were exported come back, as a document or as a whole file."""

from __future__ import annotations

import tempfile
from functools import partial

import msgspec
from anyio import to_thread
from fastapi import APIRouter, Request, Response

from nightherd.model.access.role import Role
from nightherd.views.sessions.sessions import SessionRow, session_row
from nightherd.web.access.caller import needs
from nightherd.web.access.guard import IMPORT_FILE
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import JSON, answers, document
from nightherd.web.requests import NewSessionImport
from nightherd.web.sessions.session_changes import session_answer
from nightherd.wiring.imports import import_exported_session

IMPORTED = {"jobs_imported": int, "is_new": bool, "is_dry_run": bool}
"""What stands beside an imported session."""
ANSWERS = answers("session", SessionRow, 409, status=201, also=(200,), beside=IMPORTED)
IN_MEMORY = 4 * 1024 * 1024
"""Bytes of a file that is coming in beyond which it is on the disk."""
FILE = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": {"type": "object", "description": "The file."}}},
    }
}

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.post("/import", status_code=201, responses=ANSWERS)
@needs(Role.ADMIN)
async def import_one(site: OnSite, body: NewSessionImport) -> Response:
    """Import an exported session with its jobs. Imported again, nothing changes, and the answer is 200.

    With `dry_run` nothing changes: the session is as it would be here.
    """
    return await _import(site, msgspec.json.encode(body.document), is_dry=body.dry_run)


@router.post(
    IMPORT_FILE.removeprefix(router.prefix), status_code=201, responses=ANSWERS, openapi_extra=FILE
)
@needs(Role.ADMIN)
async def import_file(site: OnSite, request: Request, dry_run: bool = False) -> Response:
    """The same with the file itself as the body, of up to 256 MB."""
    async with site.imports:
        with tempfile.SpooledTemporaryFile(IN_MEMORY, dir=str(site.state_dir)) as file:
            async for chunk in request.stream():
                await to_thread.run_sync(file.write, chunk)
            file.seek(0)
            content = await to_thread.run_sync(file.read)
        return await _import(site, content, is_dry=dry_run)


async def _import(site: ApiContext, content: bytes, *, is_dry: bool) -> Response:
    carry_out = partial(
        import_exported_session,
        content,
        site.state_dir,
        site.fleet(),
        site.environ,
        is_dry=is_dry,
    )
    adopted = await to_thread.run_sync(carry_out)
    beside = {"jobs_imported": adopted.jobs, "is_new": adopted.is_new, "is_dry_run": is_dry}
    if is_dry and adopted.is_new:
        return document("session", session_row(adopted.session), site.now(), **beside)
    status = 201 if adopted.is_new else 200
    return await session_answer(site, adopted.session.id, status, **beside)
