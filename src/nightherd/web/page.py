"""The dashboard's files: the page at every path that is not the API's, and what it loads.

The page is the same for everyone and shows nothing before a login. Files below `/assets` are named by their content
and kept by browsers for good; everything else is asked for again each time.
"""

from __future__ import annotations

import gzip
import mimetypes
import re
from functools import lru_cache
from hashlib import sha256
from html import escape
from pathlib import Path

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from nightherd.web.access.guard import WAY, is_api
from nightherd.web.access.identify import Identify
from nightherd.web.access.security_headers import PAGE_POLICY, WORKER_POLICY

UI = Path(__file__).parent / "ui"
"""The built dashboard."""
ASSETS = "assets/"
WORKER = "sw.js"
FOR_GOOD = "public, max-age=31536000, immutable"
EACH_TIME = "no-cache"
BASE = re.compile(r"<base\b[^>]*>", re.IGNORECASE)
HEAD = re.compile(r"<head\b[^>]*>", re.IGNORECASE)
TEXTS = ("text/", "application/json", "application/manifest+json", "image/svg+xml")
KINDS = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""Not left to the tables of the machine."""
MISSING = (
    "The dashboard is not part of this installation: its files are built into released packages. "
    "The API works: its description is at {base}/v1/openapi.json."
)

METHODS = ("GET", "HEAD")


def install(app: FastAPI, ui: Path) -> None:
    """Answer every path that is not the API's with the dashboard of `ui`."""
    not_found = app.router.default

    async def show(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_api(scope["path"]):
            await not_found(scope, receive, send)
            return
        if scope["method"] not in METHODS:
            raise HTTPException(405, "Method Not Allowed", {"allow": ", ".join(METHODS)})
        request, path = Request(scope), scope["path"].removeprefix("/")
        answer = await to_thread.run_sync(_answer, ui, path, _base_path(request), request)
        await answer(scope, receive, send)

    app.router.default = show


def _base_path(request: Request) -> str:
    way = request.scope.get(WAY)
    return way.addresses.base_path if isinstance(way, Identify) else ""


def _answer(ui: Path, path: str, base: str, request: Request) -> Response:
    file = _find(ui, path)
    if file is None and path.startswith(ASSETS):
        raise HTTPException(404, "Not Found")
    if file is None or file.name == "index.html":
        return _page(ui / "index.html", base, request)
    cache = FOR_GOOD if path.startswith(ASSETS) else EACH_TIME
    content = file.read_bytes()
    kind = KINDS.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    answer = _file(content, kind or "application/octet-stream", cache, request)
    if path == WORKER:
        answer.headers["content-security-policy"] = WORKER_POLICY
    return answer


def _find(ui: Path, path: str) -> Path | None:
    """The file of that name; None when there is none, or it is outside of the dashboard's files."""
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        return None
    if "\0" in path or "\\" in path:
        return None
    file = ui.joinpath(*parts)
    try:
        is_inside = file.resolve(strict=True).is_relative_to(ui.resolve())
        return file if is_inside and file.is_file() else None
    except OSError:
        return None


def _page(index: Path, base: str, request: Request) -> Response:
    try:
        text = index.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return _missing(base)
    answer = _file(with_base(text, base).encode(), "text/html", EACH_TIME, request)
    answer.headers["content-security-policy"] = PAGE_POLICY
    return answer


def with_base(text: str, base: str) -> str:
    """The page with the address that its relative links begin with."""
    element = f'<base href="{escape(base)}/">'
    if BASE.search(text):
        return BASE.sub(element, text, count=1)
    return HEAD.sub(lambda head: head[0] + element, text, count=1)


def _missing(base: str) -> Response:
    text = escape(MISSING.format(base=base))
    page = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>nightherd</title></head><body><p>{text}</p></body></html>'
    return HTMLResponse(page, 404)


def _file(content: bytes, kind: str, cache: str, request: Request) -> Response:
    """The content as an answer; compressed where the browser takes that, and not sent to one that has it."""
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {"cache-control": cache, "etag": tag, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(None, 304, headers)
    is_text = kind.startswith(TEXTS)
    if is_text and "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["content-encoding"] = _compressed(content), "gzip"
    media_type = f"{kind}; charset=utf-8" if is_text else kind
    if request.method == "HEAD":
        answer = Response(None, 200, headers, media_type)
        answer.headers["content-length"] = str(len(content))
        return answer
    return Response(content, 200, headers, media_type)


@lru_cache(maxsize=256)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, 6, mtime=0)
