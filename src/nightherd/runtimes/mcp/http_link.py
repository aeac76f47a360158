"""Links over the network: streamable HTTP, and the older pair of an event stream and an address to post to.

Requests are made in worker threads with the standard library. A question that is cancelled closes its
connection, which is what ends the thread's waiting.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import anyio
from anyio import to_thread

from nightherd.model.agents.mcp import McpServer
from nightherd.runtimes.mcp.injected import Message
from nightherd.runtimes.mcp.link import LinkError, answer_to, heard_in

CONNECT_S = 30.0
LONGEST_ANSWER = 64 * 1024 * 1024
SESSION = "Mcp-Session-Id"
VERSION = "MCP-Protocol-Version"

T = TypeVar("T")


class HttpLink:
    """A server that answers every request by itself, with one message or a stream of events."""

    is_concurrent = True

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._named: dict[str, str] = {}
        """Headers that the server wants to see again."""

    async def ask(self, message: Message) -> Message:
        connection = connect(self._server.url or "")

        def work() -> Message:
            response = self._post(connection, message)
            if "text/event-stream" in response.getheader("content-type", ""):
                texts: Iterator[str] = (event.data for event in events_in(response))
            else:
                texts = iter([response.read(LONGEST_ANSWER).decode(errors="replace")])
            for text in texts:
                for heard in heard_in(text):
                    answer = answer_to(message["id"], heard)
                    if answer is not None:
                        self._note_version(answer)
                        return answer
            raise LinkError("it did not answer the request")

        return await in_thread(work, connection)

    async def tell(self, message: Message) -> None:
        connection = connect(self._server.url or "")
        await in_thread(lambda: self._post(connection, message).read(LONGEST_ANSWER), connection)

    async def close(self) -> None:
        """Nothing is held open between questions."""

    def _post(
        self, connection: http.client.HTTPConnection, message: Message
    ) -> http.client.HTTPResponse:
        response = post(
            connection, self._server.url or "", message, {**self._server.headers, **self._named}
        )
        session = response.getheader(SESSION)
        if session is not None:
            self._named[SESSION] = session
        return response

    def _note_version(self, answer: Message) -> None:
        match answer:
            case {"result": {"protocolVersion": str(version)}}:
                self._named[VERSION] = version
            case _:
                pass


class SseLink:
    """A server that answers on one stream, which also names the address for requests."""

    is_concurrent = False

    def __init__(self, server: McpServer, stream: http.client.HTTPConnection) -> None:
        self._server = server
        self._stream = stream
        self._events: Iterator[Event] = iter(())
        self._address = ""

    async def open(self) -> None:
        """Have the stream opened, and learn the address."""

        def work() -> None:
            url = self._server.url or ""
            headers = {"Accept": "text/event-stream", **self._server.headers}
            self._stream.request("GET", path_of(url), headers=headers)
            response = self._stream.getresponse()
            if response.status != http.client.OK:
                raise LinkError(f"it answered with status {response.status}")
            self._events = events_in(response)
            for event in self._events:
                if event.kind == "endpoint":
                    self._address = urljoin(url, event.data)
                    # Silence between events is no sign of anything.
                    if self._stream.sock is not None:
                        self._stream.sock.settimeout(None)
                    return
            raise LinkError("it did not name the address to post to")

        await in_thread(work, self._stream, keep=True)

    async def ask(self, message: Message) -> Message:
        await self.tell(message)

        def work() -> Message:
            for event in self._events:
                for heard in heard_in(event.data):
                    answer = answer_to(message["id"], heard)
                    if answer is not None:
                        return answer
            raise LinkError("its stream has ended")

        return await in_thread(work, self._stream, keep=True)

    async def tell(self, message: Message) -> None:
        connection = connect(self._address)
        headers = self._server.headers
        await in_thread(
            lambda: post(connection, self._address, message, headers).read(LONGEST_ANSWER),
            connection,
        )

    async def close(self) -> None:
        hang_up(self._stream)


class Event:
    """One event of a stream."""

    __slots__ = ("data", "kind")

    def __init__(self, kind: str, data: str) -> None:
        self.kind = kind
        self.data = data


def events_in(response: http.client.HTTPResponse) -> Iterator[Event]:
    """The events of a stream, as they come."""
    kind, data = "message", list[str]()
    while raw := response.readline(LONGEST_ANSWER):
        line = raw.decode(errors="replace").rstrip("\r\n")
        name, _, value = line.partition(":")
        if not line:
            if data:
                yield Event(kind, "\n".join(data))
            kind, data = "message", []
        elif name == "event":
            kind = value.strip()
        elif name == "data":
            data.append(value.removeprefix(" "))


def connect(url: str) -> http.client.HTTPConnection:
    """A connection to the server of `url`, not opened yet; `LinkError` when that is no address."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise LinkError("its url is not an address of the web")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname, parts.port, timeout=CONNECT_S)


def path_of(url: str) -> str:
    """What is asked of the server of `url`."""
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def post(
    connection: http.client.HTTPConnection,
    url: str,
    message: Message,
    headers: Mapping[str, Any],
) -> http.client.HTTPResponse:
    """The response to a message; `LinkError` when the server refuses it."""
    connection.connect()
    if connection.sock is not None:
        connection.sock.settimeout(None)  # how long an answer may take is for the asker to say
    every = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **headers,
    }
    connection.request("POST", path_of(url), json.dumps(message), every)
    response = connection.getresponse()
    if response.status not in {http.client.OK, http.client.ACCEPTED, http.client.NO_CONTENT}:
        raise LinkError(f"it answered with status {response.status}")
    return response


async def in_thread(
    work: Callable[[], T], connection: http.client.HTTPConnection, *, keep: bool = False
) -> T:
    """What `work` returns. Cancelled or failed, its connection is closed; else too, unless it is kept."""
    try:
        result = await to_thread.run_sync(work, abandon_on_cancel=True)
    except (http.client.HTTPException, OSError) as error:
        hang_up(connection)
        raise LinkError(f"it cannot be reached: {type(error).__name__}") from error
    except BaseException:
        hang_up(connection)
        raise
    if not keep:
        hang_up(connection)
    await anyio.lowlevel.checkpoint()
    return result


def hang_up(connection: http.client.HTTPConnection) -> None:
    """Wake everything that waits on the connection."""
    if connection.sock is not None:
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:  # it was not connected, or is not any more
            pass
    connection.close()
