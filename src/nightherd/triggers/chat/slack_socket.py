"""One connection of Socket Mode: opened, read to its end, and closed when another has taken its place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest

from nightherd.errors import NightherdError
from nightherd.model.webhooks import is_loopback
from nightherd.triggers.chat.slack_client import CLOSING_S, SlackClient
from nightherd.triggers.chat.slack_errors import refusal

HEARTBEAT_S = 30.0
"""A connection on which nothing came for so long is asked for a sign of life."""
HELLO_S = 30.0
DRAIN_S = 5.0
"""How long a connection that was replaced stays open for what is under way on it."""
LARGEST_MESSAGE = 8 * 1024 * 1024


class Ending(StrEnum):
    """Why a connection ends."""

    CUT = "the connection was cut"
    REFRESH = "Slack asked for a new connection"
    """It is still open, and another may take its place."""
    SWITCHED_OFF = "Socket Mode is switched off in the app's settings"
    TOO_MANY = "the app has too many connections"


REASONS = {
    "warning": Ending.REFRESH,
    "refresh_requested": Ending.REFRESH,
    "link_disabled": Ending.SWITCHED_OFF,
    "too_many_websockets": Ending.TOO_MANY,
}


class NotConnectedError(NightherdError):
    """A connection could not be opened. It may work later."""

    def __init__(self, message: str, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SlackSocket(AsyncBaseSocketModeClient):
    """A connection. What it receives is handed to `take`, each in a task of `tasks`, begun in the order of arrival."""

    def __init__(
        self,
        client: SlackClient,
        app_token: str,
        variable: str,
        take: Callable[[SlackSocket, SocketModeRequest], Awaitable[None]],
        tasks: TaskGroup,
    ) -> None:
        self.logger = client.logger
        self.ended = anyio.Event()
        """It is cut, or Slack asked for another one."""
        self.ending = Ending.CUT
        self._client = client
        self._app_token = app_token
        self._variable = variable
        self._take = take
        self._tasks = tasks
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._retired = anyio.Event()
        self._under_way = 0
        self._idle = anyio.Event()
        self._idle.set()

    @property
    def is_open(self) -> bool:
        """Whether something can still come in."""
        return self._socket is not None and not self._socket.closed

    def retire(self) -> None:
        """Close it once what is under way has been acknowledged."""
        self._retired.set()

    async def run(
        self,
        on_open: Callable[[], Awaitable[None]],
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Open it, call `on_open`, and read until it is closed. What comes in waits for `on_open`.

        `NotConnectedError` when it cannot be opened now, `ChatRefusedError` when the app's token is not accepted.
        """
        url = await self._address()
        session = aiohttp.ClientSession()
        try:
            socket = await self._connect(session, url)
            await on_open()
            task_status.started()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._close_when_retired, socket)
                await self._read(socket)
                tasks.cancel_scope.cancel()
        finally:
            self.ended.set()
            with anyio.move_on_after(CLOSING_S, shield=True):
                if self._socket is not None:
                    await self._socket.close()
                await session.close()

    async def _address(self) -> str:
        """Return the address to connect to: it holds a ticket, and is good for one connection."""
        answer = await self._client.call("apps.connections.open", token=self._app_token)
        if answer.is_refusing or answer.error == "missing_scope":
            raise refusal(answer, self._variable)
        if not answer.is_ok:
            raise NotConnectedError(answer.reason, answer.retry_after)
        url = str(answer.data.get("url"))
        parts = urlsplit(url)
        is_safe = parts.scheme == "wss" or (
            parts.scheme == "ws"
            and is_loopback(parts.hostname or "")
            and is_loopback(urlsplit(self._client.api_url).hostname or "")
        )
        if not is_safe:
            raise NotConnectedError("Slack names an address that is not a secure websocket")
        return url

    async def _connect(
        self, session: aiohttp.ClientSession, url: str
    ) -> aiohttp.ClientWebSocketResponse:
        """Connect, and wait for Slack's hello. No error names the address: it holds the ticket."""
        try:
            with anyio.fail_after(HELLO_S):
                socket = await session.ws_connect(
                    url,
                    heartbeat=HEARTBEAT_S,
                    max_msg_size=LARGEST_MESSAGE,
                    proxy=self._client.web.proxy,
                )
                self._socket = socket
                async for message in socket:
                    kind = _decode(message).get("type")
                    if kind == "hello":
                        return socket
                    if kind == "disconnect":
                        reason = REASONS.get(str(_decode(message).get("reason")), Ending.CUT)
                        raise NotConnectedError(reason.value)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise NotConnectedError(f"no websocket: {type(error).__name__}") from None
        raise NotConnectedError("the connection was closed before Slack's hello")

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            data = _decode(message)
            if data.get("type") == "disconnect":
                self.ending = REASONS.get(str(data.get("reason")), Ending.REFRESH)
                self.ended.set()
                continue
            request = SocketModeRequest.from_dict(data)
            if request is not None and isinstance(data.get("payload"), dict):
                self._under_way += 1
                self._idle = anyio.Event()
                self._tasks.start_soon(self._hand_on, request)

    async def _hand_on(self, request: SocketModeRequest) -> None:
        try:
            await self._take(self, request)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def _close_when_retired(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        await self._retired.wait()
        with anyio.move_on_after(DRAIN_S):
            await self._idle.wait()
        await socket.close()

    async def send_message(self, message: str) -> None:
        """Send an acknowledgement. On a closed connection it is lost, and Slack delivers again."""
        if self._socket is None:
            return
        try:
            await self._socket.send_str(message)
        except (aiohttp.ClientError, ConnectionError, RuntimeError):
            return


def _decode(message: aiohttp.WSMessage) -> dict[str, Any]:
    if message.type is not aiohttp.WSMsgType.TEXT:
        return {}
    try:
        data = msgspec.json.decode(message.data)
    except msgspec.MsgspecError:
        return {}
    return data if isinstance(data, dict) else {}
