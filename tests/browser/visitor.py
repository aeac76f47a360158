"""A visitor: one person's browser, logged in or not, and what it complains about."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Protocol

from playwright.async_api import Browser, BrowserContext, Page, Request

from browser.accessibility import axe_violations
from browser.complaints import Complaints
from browser.looks import DESKTOP, Look
from browser.ui_folder import serve_chosen_ui
from nightherd.model.access.role import Role

SCREENSHOTS = "NIGHTHERD_SCREENSHOTS"
"""The folder that pictures are written to; without it none are taken."""
PATIENCE_MS = 60_000
GONE = (r"ERR_CONNECTION_REFUSED", r"ERR_CONNECTION_RESET", r"ERR_INCOMPLETE_CHUNKED_ENCODING", r"ERR_EMPTY_RESPONSE", r"ERR_CONNECTION_CLOSED", r"ERR_SOCKET_NOT_CONNECTED")  # fmt: skip
"""What a browser says of a server that was killed."""
KEEP_SECRET = """
(({ origin, key, secret }) => {
  if (self.origin === origin && localStorage.getItem(key) === null) localStorage.setItem(key, secret);
})
"""
"""What is no page of the fleet has no storage, or one of its own: `self.origin` of a sandboxed answer is `null`."""
IS_KEPT = "(key) => localStorage.getItem(key) !== null"


class Host(Protocol):
    """What is visited."""

    origin: str
    url: str
    shows_dashboard: bool
    """Whether its page is the dashboard, and not one of the test's own."""

    async def new_link(self, path: str = "/") -> str:
        """A page with a login code in its fragment."""

    async def new_token(self, name: str, role: Role) -> str:
        """A new named token."""


class Visitor:
    """A browser context at a fleet, with the cookies and the storage of one person."""

    def __init__(
        self, fleet: Host, context: BrowserContext, complaints: Complaints, look: Look
    ) -> None:
        self.fleet = fleet
        self.context = context
        self.complaints = complaints
        self.look = look
        self.requests: list[Request] = []
        """Everything it asked for, in order."""
        context.on("request", self._note_request)

    def _note_request(self, request: Request) -> None:
        self.requests.append(request)

    @property
    def page(self) -> Page:
        """The first tab."""
        return self.context.pages[0]

    @property
    def secret_key(self) -> str:
        """The name under which its pages keep their half of a login."""
        return f"nightherd.secret {self.fleet.url.removeprefix(self.fleet.origin)}/"

    async def open(self, path: str = "/") -> Page:
        """Another tab at a path of the dashboard."""
        page = await self.context.new_page()
        await page.goto(self.fleet.url + path)
        return page

    async def log_in_by_link(self, path: str = "/") -> Page:
        """Open a tab at `path` with a one-time code in the fragment; the page has logged in with it on return."""
        page = await self.context.new_page()
        async with page.expect_response(re.compile(r"/v1/login$")) as login:
            await page.goto(await self.fleet.new_link(path))
        assert (await login.value).status == 200
        # The answer is there before the page has kept its half of the login.
        await page.wait_for_function(IS_KEPT, arg=self.secret_key)
        return page

    async def log_in(self, *, code: str | None = None, token: str | None = None) -> str:
        """Log the browser in without a page: the secret, which pages opened from now on have too."""
        given = {"code": code} if code is not None else {"token": token}
        answer = await self.context.request.post(f"{self.fleet.url}/v1/login", data=given)
        assert answer.status == 200, await answer.text()
        secret = str((await answer.json())["data"]["secret"])
        given = {"origin": self.fleet.origin, "key": self.secret_key, "secret": secret}
        await self.context.add_init_script(f"{KEEP_SECRET}({json.dumps(given)})")
        return secret

    def allow_absence(self) -> None:
        """From now on the daemon may be gone."""
        self.complaints.allow(*GONE)

    async def axe(self) -> list[str]:
        """What axe-core finds wrong with the first tab."""
        return await axe_violations(self.page)

    async def shoot(self, name: str, *, is_whole: bool = False) -> None:
        """Write a picture of the first tab for people to look at, where a folder for pictures is set."""
        folder = os.environ.get(SCREENSHOTS)
        if folder:
            path = Path(folder) / f"{name}-{self.look}.png"
            await self.page.screenshot(path=path, full_page=is_whole)


async def new_visitor(
    browser: Browser, fleet: Host, look: Look = DESKTOP, **options: Any
) -> Visitor:
    """A browser that has never been here."""
    given = {
        **look.options,
        "locale": "en-GB",
        "timezone_id": "UTC",
        "reduced_motion": "reduce",
        **options,
    }
    context = await browser.new_context(**given)
    context.set_default_timeout(PATIENCE_MS)
    complaints = Complaints(fleet.origin)
    await complaints.listen(context)
    if fleet.shows_dashboard:
        await serve_chosen_ui(context, fleet.url)
    return Visitor(fleet, context, complaints, look)


class Visitors:
    """The visitors of one test."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._visitors: list[Visitor] = []

    async def __call__(
        self,
        fleet: Host,
        path: str = "/",
        *,
        look: Look = DESKTOP,
        role: Role | None = Role.ADMIN,
        name: str = "alice",
        **options: Any,
    ) -> Visitor:
        """Somebody at a page of the fleet: by a login link, or with another role than an admin's by a token called `name`.

        With `role=None` nobody is logged in. `options` are of `browser.new_context`.
        """
        visitor = await self.arrive(fleet, look, **options)
        if role is Role.ADMIN:
            await visitor.log_in_by_link(path)
            return visitor
        if role is not None:
            await visitor.log_in(token=await fleet.new_token(name, role))
        await visitor.open(path)
        return visitor

    async def arrive(self, fleet: Host, look: Look = DESKTOP, **options: Any) -> Visitor:
        """A browser without a page, and not logged in."""
        visitor = await new_visitor(self._browser, fleet, look, **options)
        self._visitors.append(visitor)
        return visitor

    async def leave(self) -> None:
        """Close every browser, and fail the test for what it did not expect of them."""
        for visitor in self._visitors:
            await visitor.context.close()
        for visitor in self._visitors:
            visitor.complaints.check()
