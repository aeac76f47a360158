"""How a loopback Slack reaches an app: Socket Mode connections, or signed requests to an address.

What is not acknowledged is delivered again, as Slack does it: events only, three times at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp import web

from nightherd.testing.slack_workspace import APP, SIGNING_SECRET

MOST_RETRIES = 3
ANSWER_S = 3.0
"""How long Slack waits for the answer to a request."""


class Delivery(msgspec.Struct, kw_only=True):
    """Something that is delivered, and how often it was."""

    id: str
    kind: str
    """`events_api`, `interactive` or `slash_commands`."""
    payload: Mapping[str, Any]
    attempts: int = 0
    is_acknowledged: bool = False
    answer: Any = None
    """What came with the acknowledgement."""


class SlackDeliveries:
    """The way out. Everything here runs in the server's event loop."""

    def __init__(self, on_news: Callable[[], None], now: Callable[[], float]) -> None:
        self.deliveries: list[Delivery] = []
        """Everything that was to be delivered, in its order."""
        self.redeliver_after_s = ANSWER_S
        """After how long what is not acknowledged is delivered again."""
        self.address: str | None = None
        """Where signed requests are sent; None for Socket Mode."""
        self.tickets: set[str] = set()
        """Those with which a connection may be opened, each once."""
        self.opened = 0
        """How many connections were opened so far."""
        self._by_id: dict[str, Delivery] = {}
        self._sockets: list[web.WebSocketResponse] = []
        self._leaving: set[web.WebSocketResponse] = set()
        self._news = on_news
        self._now = now
        self._requests: asyncio.Queue[Delivery] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def connections(self) -> int:
        """How many connections of Socket Mode are open."""
        return len(self._sockets)

    def start(self) -> None:
        """Begin to send requests."""
        self._keep(self._send_requests())

    async def stop(self) -> None:
        """Send nothing more, and close the connections."""
        for task in tuple(self._tasks):
            task.cancel()
        for socket in tuple(self._sockets):
            await socket.close()

    def add(self, delivery: Delivery) -> None:
        """Note what is delivered next; may be called from any thread."""
        self.deliveries.append(delivery)
        self._by_id[delivery.id] = delivery

    def deliver(self, delivery: Delivery) -> None:
        """Deliver something. An event at a time without any connection is not delivered later."""
        if self.address is not None:
            self._requests.put_nowait(delivery)
        else:
            self._keep(self._send(delivery))
        self._news()

    def drop(self) -> None:
        """Cut every connection, without a word."""
        for socket in tuple(self._sockets):
            self._forget(socket)
            _abort(socket)

    def ask_to_leave(self, reason: str) -> None:
        """Tell every connection that it will be closed."""
        for socket in tuple(self._sockets):
            self._leaving.add(socket)
            message = {"type": "disconnect", "reason": reason, "debug_info": {"host": "loopback"}}
            self._keep(_say(socket, message))

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection of Socket Mode."""
        ticket = request.query.get("ticket", "")
        if ticket not in self.tickets:
            return web.Response(status=403)
        self.tickets.discard(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        hello = {
            "type": "hello",
            "num_connections": len(self._sockets) + 1,
            "debug_info": {"host": "loopback", "approximate_connection_time": 18_060},
            "connection_info": {"app_id": APP},
        }
        await socket.send_json(hello)
        self._sockets.append(socket)
        self.opened += 1
        self._news()
        try:
            async for message in socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    self._acknowledge(json.loads(message.data))
        finally:
            self._forget(socket)
        return socket

    def _acknowledge(self, message: Mapping[str, Any]) -> None:
        delivery = self._by_id.get(message.get("envelope_id", ""))
        if delivery is not None:
            delivery.is_acknowledged, delivery.answer = True, message.get("payload")
        self._news()

    def _forget(self, socket: web.WebSocketResponse) -> None:
        self._leaving.discard(socket)
        if socket in self._sockets:
            self._sockets.remove(socket)
        self._news()

    async def _send(self, delivery: Delivery) -> None:
        """Deliver to the newest connection, until it is acknowledged."""
        is_event = delivery.kind == "events_api"
        while not delivery.is_acknowledged:
            staying = [one for one in self._sockets if one not in self._leaving]
            if staying:
                delivery.attempts += 1
                await _say(staying[-1], _envelope(delivery, is_event=is_event))
                self._news()
            elif not delivery.attempts:
                return  # nobody was there
            if not is_event or delivery.attempts > MOST_RETRIES:
                return
            await asyncio.sleep(self.redeliver_after_s)

    async def _send_requests(self) -> None:
        """Send requests one after the other."""
        async with aiohttp.ClientSession() as session:
            while True:
                delivery = await self._requests.get()
                while not delivery.is_acknowledged and delivery.attempts <= MOST_RETRIES:
                    delivery.attempts += 1
                    await self._request(session, delivery)
                    self._news()
                    if delivery.kind != "events_api":
                        break
                    if not delivery.is_acknowledged:
                        await asyncio.sleep(self.redeliver_after_s)

    async def _request(self, session: aiohttp.ClientSession, delivery: Delivery) -> None:
        if delivery.kind == "events_api":
            body, kind = json.dumps(delivery.payload), "application/json"
        elif delivery.kind == "interactive":
            body = urlencode({"payload": json.dumps(delivery.payload)})
            kind = "application/x-www-form-urlencoded"
        else:
            body, kind = urlencode(delivery.payload), "application/x-www-form-urlencoded"
        headers = {"content-type": kind, **signed(body, self._now())}
        if delivery.attempts > 1:
            headers["x-slack-retry-num"] = str(delivery.attempts - 1)
            headers["x-slack-retry-reason"] = "http_error"
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with session.post(
                self.address or "", data=body.encode(), headers=headers, timeout=timeout
            ) as response:
                text = await response.text()
                if response.status == 200:
                    delivery.is_acknowledged = True
                    is_json = response.content_type == "application/json"
                    delivery.answer = json.loads(text) if is_json else None

    def _keep(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def signed(body: str, at: float, secret: str = SIGNING_SECRET) -> dict[str, str]:
    """Return the headers by which Slack signs a request that it sends at that time."""
    timestamp = str(int(at))
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256)
    return {
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": f"v0={digest.hexdigest()}",
    }


def _envelope(delivery: Delivery, *, is_event: bool) -> dict[str, Any]:
    envelope: dict[str, Any] = {
        "envelope_id": delivery.id,
        "type": delivery.kind,
        "payload": delivery.payload,
        "accepts_response_payload": not is_event,
    }
    if is_event:
        envelope["retry_attempt"] = delivery.attempts - 1
        envelope["retry_reason"] = "timeout" if delivery.attempts > 1 else ""
    return envelope


async def _say(socket: web.WebSocketResponse, message: Mapping[str, Any]) -> None:
    with contextlib.suppress(ConnectionError, aiohttp.ClientError, RuntimeError):
        await socket.send_json(message)


def _abort(socket: web.WebSocketResponse) -> None:
    transport = socket.get_extra_info("transport")
    request = getattr(socket, "_req", None)
    transport = transport or (None if request is None else request.transport)
    if transport is not None:
        transport.abort()
