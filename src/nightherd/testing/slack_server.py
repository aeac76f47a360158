"""The server of a loopback Slack: it answers calls of the Web API, serves files, and fails when it is told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Self

import msgspec
from aiohttp import web

from nightherd.ports import Clock
from nightherd.testing.slack_methods import SlackMethods, method_arguments
from nightherd.testing.slack_socket import Delivery, SlackDeliveries
from nightherd.testing.slack_workspace import (
    APP,
    APP_TOKEN,
    BOT_TOKEN,
    SIGNING_SECRET,
    SlackWorkspace,
)

LARGEST_FILE = 64 * 1024 * 1024
SENDING = ("chat.postMessage", "chat.update", "files.completeUploadExternal")
"""Methods by which the bot sends messages."""
REVOKED = {"ok": False, "error": "token_revoked"}


class SlackCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the Web API."""

    method: str
    arguments: Mapping[str, str]
    token: str


class _Failing(msgspec.Struct, kw_only=True):
    """How calls fail."""

    methods: Collection[str]
    status: int = 200
    error: str | None = None
    retry_after: int | None = None
    is_done: bool = False
    """Whether the call has its effect all the same."""
    is_cut: bool = False
    """Whether the connection is cut instead of an answer."""
    late_s: float | None = None
    """How much later the call is carried out, which does not fail then."""
    times: int = 1


class SlackServer:
    """A server on 127.0.0.1, in a thread of its own. It runs while its context lasts."""

    def __init__(self, scopes: Collection[str] | None, clock: Clock) -> None:
        self.workspace = SlackWorkspace(clock)
        self.methods = SlackMethods(self.workspace)
        self.is_revoked = False
        self.calls: list[SlackCall] = []
        """Every call of the Web API so far."""
        self.replies: list[Any] = []
        """What was sent to the addresses that come with commands, for late answers."""
        self.loop = asyncio.new_event_loop()
        """The event loop of the server."""
        self.out = SlackDeliveries(self._tell, lambda: clock.now().timestamp())
        """How the app is reached."""
        self._scopes = None if scopes is None else frozenset(scopes)
        self._failing: list[_Failing] = []
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The address of the Web API."""
        return f"{self.methods.base}/api/"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that a bot needs, with their usual names."""
        return {
            "NIGHTHERD_SLACK_API_URL": self.url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
        }

    @property
    def deliveries(self) -> Sequence[Delivery]:
        """What was to be delivered to the app, and whether that was acknowledged."""
        return tuple(self.out.deliveries)

    @property
    def connections(self) -> int:
        """How many connections of Socket Mode are open."""
        return self.out.connections

    @property
    def opened(self) -> int:
        """How many connections of Socket Mode were opened so far."""
        return self.out.opened

    def wait_for(self, is_so: Callable[[], object], timeout_s: float = 60.0) -> bool:
        """Return whether something becomes so within the time."""
        with self._news:
            return bool(self._news.wait_for(is_so, timeout_s))

    def called(self, method: str) -> list[SlackCall]:
        """Return the calls of a method so far."""
        return [one for one in tuple(self.calls) if one.method == method]

    def deliver_to(self, address: str) -> None:
        """Reach the app by signed requests to an address, instead of Socket Mode."""
        self.out.address = address

    def redeliver_after(self, seconds: float) -> None:
        """Deliver again what is not acknowledged within this time, instead of three seconds."""
        self.out.redeliver_after_s = seconds

    def fail(
        self,
        *methods: str,
        error: str | None = None,
        status: int = 200,
        retry_after: int | None = None,
        is_done: bool = False,
        is_cut: bool = False,
        late_s: float | None = None,
        times: int = 1,
    ) -> None:
        """Make the next calls of these methods fail; without `error` with a page that is not Slack's.

        With `late_s` they are only carried out so many seconds later, also when the bot has hung up meanwhile.
        """
        failing = _Failing(
            methods=methods,
            status=status,
            error=error,
            retry_after=retry_after,
            is_done=is_done,
            is_cut=is_cut,
            late_s=late_s,
            times=times,
        )
        with self.workspace.lock:
            self._failing.append(failing)

    def limit_rate(self, pause: timedelta) -> None:
        """Refuse the next message of the bot: too many."""
        seconds = int(pause.total_seconds())
        self.fail(*SENDING, error="ratelimited", status=429, retry_after=seconds)

    def refuse(self) -> None:
        """Refuse the next message of the bot for good."""
        self.fail(*SENDING, error="is_archived")

    def lose_answer(self) -> None:
        """Take the next message of the bot, and lose the connection before the answer."""
        self.fail(*SENDING, is_done=True, is_cut=True)

    def take_late(self, seconds: float) -> None:
        """Take the next new message of the bot so much later; until then no history shows it."""
        self.fail("chat.postMessage", late_s=seconds)

    def break_down(self) -> None:
        """Answer the next message of the bot with a server error."""
        self.fail(*SENDING, status=503)

    def drop(self) -> None:
        """Cut the connections of Socket Mode."""
        self.loop.call_soon_threadsafe(self.out.drop)

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """Announce the end of the connections: `warning`, `refresh_requested`, `link_disabled`, `too_many_websockets`."""
        self.loop.call_soon_threadsafe(self.out.ask_to_leave, reason)

    def revoke(self) -> None:
        """Make the tokens worthless."""
        self.is_revoked = True

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *details: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        loop = self.loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._start())
            self._ready.set()
            loop.run_forever()
            loop.run_until_complete(self._stop())
        finally:
            loop.close()

    async def _start(self) -> None:
        app = web.Application(client_max_size=LARGEST_FILE)
        app.router.add_post("/api/{method}", self._answer_call)
        app.router.add_get("/link", self.out.serve)
        app.router.add_post("/upload/v1/{id}", self._take_file)
        app.router.add_get("/files-pri/{id}/{name}", self._give_file)
        app.router.add_post("/respond/{trigger}", self._take_reply)
        app.router.add_get("/signin", _sign_in)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.methods.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.out.start()

    async def _stop(self) -> None:
        await self.out.stop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer_call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        arguments = method_arguments(await request.post())
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.calls.append(SlackCall(method=method, arguments=arguments, token=token))
        failing = self._next_failure(method)
        if failing is not None and failing.late_s is not None:
            await asyncio.sleep(failing.late_s)
            failing = None
        answer: Mapping[str, Any] = {}
        if failing is None or failing.is_done:
            answer = self._call(method, arguments, token)
        self._tell()
        if failing is None:
            return web.json_response(answer)
        if failing.is_cut:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        headers = {} if failing.retry_after is None else {"Retry-After": str(failing.retry_after)}
        if failing.error is None:
            return web.Response(status=failing.status, text="upstream error", headers=headers)
        failed = {"ok": False, "error": failing.error}
        return web.json_response(failed, status=failing.status, headers=headers)

    async def _take_file(self, request: web.Request) -> web.Response:
        file = self.workspace.files.get(request.match_info["id"])
        content = await request.read()
        if file is None or len(content) != file.size:
            return web.Response(status=400)
        file.content = content
        return web.Response(text=f"OK - {len(content)}")

    async def _give_file(self, request: web.Request) -> web.Response:
        file = self.workspace.files.get(request.match_info["id"].partition("-")[2])
        may_read = self._scopes is None or "files:read" in self._scopes
        is_known = request.headers.get("authorization") == f"Bearer {BOT_TOKEN}"
        if file is None or not is_known or not may_read or self.is_revoked:
            raise web.HTTPFound("/signin")
        return web.Response(body=file.content, content_type=file.media_type)

    async def _take_reply(self, request: web.Request) -> web.Response:
        self.replies.append(await request.json())
        self._tell()
        return web.Response(text="ok")

    def _call(self, method: str, arguments: Mapping[str, str], token: str) -> Mapping[str, Any]:
        if self.is_revoked:
            return REVOKED
        if method == "apps.connections.open":
            if token != APP_TOKEN:
                return {"ok": False, "error": "not_allowed_token_type"}
            ticket = self.workspace.next_id("ticket-")
            self.out.tickets.add(ticket)
            url = self.methods.base.replace("http:", "ws:")
            return {"ok": True, "url": f"{url}/link?ticket={ticket}&app_id={APP}"}
        if token != BOT_TOKEN:
            return {"ok": False, "error": "invalid_auth" if token else "not_authed"}
        return self.methods.call(method, arguments, self._scopes)

    def _next_failure(self, method: str) -> _Failing | None:
        with self.workspace.lock:
            for failing in self._failing:
                if method in failing.methods:
                    failing.times -= 1
                    if failing.times <= 0:
                        self._failing.remove(failing)
                    return failing
        return None

    def _tell(self) -> None:
        with self._news:
            self._news.notify_all()


async def _sign_in(request: web.Request) -> web.Response:
    return web.Response(text="<html>Sign in to Slack</html>", content_type="text/html")
