"""Complaints: what a browser has to say about the pages of one context. A test fails for each that it did not name."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import anyio
from playwright.async_api import BrowserContext, ConsoleMessage, Request, Response, WebError

OBSERVE = """
addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy: ${event.effectiveDirective} refused ${event.blockedURI || "inline"} ${event.sample}`);
});
"""
"""Runs in every page and frame before anything else; a violation in a console message is worded otherwise each year."""
ABORTED = "net::ERR_ABORTED"
"""How a request ends that its own page gave up: a stream of a tab that closes, a download."""
NO_REQUEST = ("data", "blob", "about")
FAILED = 400
PATIENCE_S = 60.0


class Complaints:
    """What was wrong in a context, as lines: `console: ...`, `error: ...`, `policy: ...`, `request: ...`, `elsewhere: ...`."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._allowed: list[str] = []
        self._expected: list[str] = []
        self._news = anyio.Event()
        self.heard: list[str] = []

    async def listen(self, context: BrowserContext) -> None:
        """Hear everything from now on."""
        context.on("console", self._hear_console)
        context.on("weberror", self._hear_error)
        context.on("request", self._hear_request)
        context.on("requestfailed", self._hear_failure)
        context.on("response", self._hear_response)
        await context.add_init_script(OBSERVE)

    def allow(self, *patterns: str) -> None:
        """Complaints with any of these (regular expressions) may come."""
        self._allowed += patterns

    def expect(self, *patterns: str) -> None:
        """Complaints with each of these have to come."""
        self._expected += patterns

    def of(self, pattern: str) -> list[str]:
        """Those heard so far with that in them."""
        return [text for text in self.heard if re.search(pattern, text)]

    async def until(self, pattern: str, *, count: int = 1) -> list[str]:
        """Those with that in them, once there are so many: a browser reports when it gets round to it."""
        with anyio.fail_after(PATIENCE_S):
            while len(found := self.of(pattern)) < count:
                self._news = anyio.Event()
                await self._news.wait()
        return found

    def check(self) -> None:
        """`AssertionError` for what was not named, and for what was expected and did not come."""
        known = [*self._allowed, *self._expected]
        unknown = [text for text in self.heard if not any(re.search(one, text) for one in known)]
        assert unknown == [], "\n".join(["the browser complains:", *unknown])
        missing = [pattern for pattern in self._expected if not self.of(pattern)]
        assert missing == [], f"the browser did not complain about {missing}; it said: {self.heard}"

    def _hear(self, text: str) -> None:
        self.heard.append(text)
        self._news.set()

    def _hear_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            place = message.location.get("url", "")
            is_ours = message.text.startswith("policy: ")
            self._hear(message.text if is_ours else f"console: {message.text} ({place})")

    def _hear_error(self, error: WebError) -> None:
        self._hear(f"error: {error.error}")

    def _hear_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in NO_REQUEST and f"{parts.scheme}://{parts.netloc}" != self._origin:
            self._hear(f"elsewhere: {request.method} {request.url}")

    def _hear_failure(self, request: Request) -> None:
        if request.failure != ABORTED:
            self._hear(f"request: {request.method} {request.url} {request.failure}")

    def _hear_response(self, response: Response) -> None:
        request = response.request
        if response.status >= FAILED and request.resource_type not in ("fetch", "xhr"):
            self._hear(f"request: {request.method} {response.url} {response.status}")
