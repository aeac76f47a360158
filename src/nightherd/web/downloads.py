"""`/v1/blobs`, and responses that carry what an agent wrote: a browser saves them and never runs them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from nightherd.errors import NotFoundError
from nightherd.model.access.role import Role
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import find_job_id
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import refusals

BYTES = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    TEXT: "txt",
    "application/json": "json",
}
"""The end of the file name for each type that is sent; `bin` for others."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
Sha256 = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes, as an attachment",
        "content": {
            media.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}}
            for media in (*EXTENSIONS, BYTES)
        },
    },
    **refusals(404, 409),
}
"""What the API description says of a path that sends a file."""

router = APIRouter(prefix="/v1/blobs", tags=["jobs"])


@router.get("/{sha256}", responses=FILE, response_class=Response)
@needs(Role.VIEWER)
async def blob(
    site: OnSite,
    sha256: Sha256,
    job: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """A body or an output that a journal names by its SHA-256, as an attachment.

    PNG, JPEG, GIF and WebP are sent as such; everything else is `application/octet-stream`. With `job` (an id,
    a unique prefix or `@last`) the file's name begins with that job's.
    """
    journals = site.context.journals

    def look(reader: StateReader) -> tuple[str, bytes, Generator[bytes, None, None]]:
        name = sha256[:12] if job is None else f"{find_job_id(reader, job)}-{sha256[:12]}"
        pieces = journals.read_blob(sha256)
        if pieces is None:
            raise NotFoundError(f"there is no blob {sha256}")
        return name, next(pieces, b""), pieces

    name, first, pieces = await site.ask(look)
    media = media_of(first)
    return BlobResponse(first, pieces, media, attachment(name, media))


class BlobResponse(StreamingResponse):
    """Sends a blob in pieces, and closes it also when the client leaves before its end."""

    def __init__(
        self,
        first: bytes,
        pieces: Generator[bytes, None, None],
        media: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(chain([first], pieces), media_type=media, headers=headers)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        with closing(self._pieces):
            await super().__call__(scope, receive, send)


def media_of(data: bytes) -> str:
    """Return the type of an image that we know by its first bytes; else the type of plain bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return BYTES


def attachment(name: str, media: str) -> dict[str, str]:
    """Return the headers of a file that is saved under `name`, which is plain ASCII."""
    file_name = f"{name}.{EXTENSIONS.get(media, 'bin')}"
    return {**HEADERS, "content-disposition": f'attachment; filename="{file_name}"'}
