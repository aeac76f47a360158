"""`/v1/sessions/SESSION/export` and `/v1/jobs/JOB/export`: what was said and done as files, for others or to keep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from nightherd.engine.operations.transfer import ExportedSession, ExportSession, export_session
from nightherd.model.access.role import Role
from nightherd.ports import StateReader
from nightherd.views.export.document import ExportFormat
from nightherd.views.export.journal import journal_lines
from nightherd.views.export.page import job_page
from nightherd.views.jobs.jobs import find_job_id, get_job
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import JSON, refusals
from nightherd.web.downloads import HEADERS
from nightherd.web.sessions.session_reading import whole_session
from nightherd.wiring.machine import is_at_work

LINES, HTML, MARKDOWN = "application/x-ndjson", "text/html", "text/markdown"
KINDS = {
    ExportFormat.JSON: (JSON, "json"),
    ExportFormat.CLAUDE: (LINES, "jsonl"),
    ExportFormat.MARKDOWN: (MARKDOWN, "md"),
    ExportFormat.HTML: (HTML, "html"),
}
"""The type of each format, and how its file's name ends."""


def _files(*media: str) -> dict[int | str, dict[str, Any]]:
    schema = {"schema": {"type": "string", "format": "binary"}}
    content = dict.fromkeys(media, schema)
    return {
        200: {"description": "The file, as an attachment", "content": content},
        **refusals(404, 409),
    }


router = APIRouter(prefix="/v1", tags=["exports"])


@router.get(
    "/sessions/{session}/export",
    responses=_files(*(media for media, _ in KINDS.values())),
    response_class=Response,
)
@needs(Role.VIEWER)
async def export_of_session(
    site: OnSite, session: str, format: ExportFormat = ExportFormat.JSON
) -> Response:
    """A session as a file: all that is recorded, a transcript for `claude`, a text to read, or a page of its own.

    The transcript is named as `claude --resume` looks for it.
    """
    found, now, context = await whole_session(site, session), site.now(), site.context

    def make(reader: StateReader) -> ExportedSession:
        request = ExportSession(session_id=found.id, format=format)
        return export_session(
            request,
            reader,
            context.journals,
            at=now,
            version=context.version,
            is_at_work=is_at_work,
        )

    exported = await site.ask(make)
    media, ending = KINDS[format]
    return _attached(exported.pieces, exported.claude_id or found.id, media, ending)


@router.get("/jobs/{job}/export", responses=_files(LINES, HTML), response_class=Response)
@needs(Role.VIEWER)
async def export_of_job(
    site: OnSite, job: str, format: Literal["jsonl", "html"] = "jsonl"
) -> Response:
    """A job as a file: its journal with all bodies, or a page of its own with the transcript."""
    found = await site.ask(lambda reader: get_job(reader, find_job_id(reader, job)))
    journals = site.context.journals
    if format == "html":
        return _attached(job_page(found, journals), found.id, HTML, "html")
    return _attached(journal_lines(found.id, journals), found.id, LINES, "jsonl")


def _attached(pieces: Iterable[str], name: str, media: str, ending: str) -> Response:
    """The file; it is made while it is sent."""
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}.{ending}"'}
    return StreamingResponse(pieces, media_type=media, headers=headers)
