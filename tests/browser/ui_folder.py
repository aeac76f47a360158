"""Another build of the dashboard than the committed one, for trying pages while they are written: NIGHTHERD_UI=FOLDER."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, Route

from nightherd.web.access.security_headers import PAGE_POLICY
from nightherd.web.page import KINDS, with_base

VARIABLE = "NIGHTHERD_UI"


async def serve_chosen_ui(context: BrowserContext, fleet_url: str) -> None:
    """Answer for the fleet with the files of the chosen folder; without one, the server's own are used."""
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        return
    folder, base = Path(chosen), urlsplit(fleet_url).path

    async def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path.removeprefix(base)
        file = folder / path.removeprefix("/")
        if path.startswith("/v1/") or path == "/metrics":
            await route.fallback()
        elif file.is_file() and file.name != "index.html":
            await route.fulfill(path=file, content_type=KINDS.get(file.suffix))
        else:
            page = with_base((folder / "index.html").read_text("utf-8"), base)
            headers = {"content-security-policy": PAGE_POLICY}
            await route.fulfill(body=page, content_type="text/html; charset=utf-8", headers=headers)

    await context.route(f"{fleet_url}/**", answer)
