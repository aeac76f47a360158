"""Links to MCP servers: a process on standard input and output, streamable HTTP, and the older pair of an event stream and an address to post to."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Protocol, TypeVar
from urllib.parse import urljoin, urlsplit

import anyio
import msgspec
from anyio import to_thread

from nightherd.model.agents.mcp import McpServer
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.launch import LineReader
from nightherd.runtimes.keeper.process import KeptProcess, kept_process
from nightherd.runtimes.mcp.injected import METHOD_NOT_FOUND, Message

LONGEST_LINE = 64 * 1024 * 1024


class LinkError(Exception):
    """The server cannot be reached, or is not there any more."""


class Link(Protocol):
    """One server that can be talked to. `LinkError` and `OSError` mean that it cannot, any more."""

    @property
    def is_concurrent(self) -> bool:
        """Whether several questions may be open at the same time."""

    async def ask(self, message: Message) -> Message:
        """The answer to a request. May be cancelled: a later answer is dropped."""

    async def send_only(self, message: Message) -> None:
        """A message that is not answered."""

    async def close(self) -> None:
        """It is let go, with everything it started. Cannot be cancelled."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the processes of servers run, and who ends them."""

    directory: str
    environment: Mapping[str, str]
    execution: str
    keepers: Keepers
    marks: Mapping[str, str]
    grace: timedelta


class StdioLink:
    """A server that is a process of ours, under a keeper."""

    is_concurrent = True

    def __init__(self, process: KeptProcess, opened: AsyncExitStack) -> None:
        self._process = process
        self._opened = opened
        self._lines = None if process.stdout is None else LineReader(process.stdout, LONGEST_LINE)
        self._sending, self._listening = anyio.Lock(), anyio.Lock()
        self._answers: dict[Any, Message | None] = {}
        """For each open request its answer, once it has arrived."""

    async def ask(self, message: Message) -> Message:
        number = message["id"]
        self._answers[number] = None
        try:
            await self.send_only(message)
            while (answer := self._answers[number]) is None:
                async with self._listening:
                    if self._answers[number] is None:
                        await self._hear()
            return answer
        finally:
            del self._answers[number]

    async def _hear(self) -> None:
        """Read the next line, whichever request it answers."""
        line = None if self._lines is None else await self._lines.next()
        if line is None:
            ending = await self._process.wait()
            raise LinkError(f"it ended with exit code {ending.returncode}")
        for heard in heard_in(line):
            number = heard.get("id")
            answer = answer_to(number, heard)
            if answer is not None and isinstance(number, int | str) and number in self._answers:
                self._answers[number] = answer
            reply = reply_to(heard)
            if reply is not None:
                await self.send_only(reply)

    async def send_only(self, message: Message) -> None:
        async with self._sending:
            if self._process.stdin is not None:
                await self._process.stdin.send(json.dumps(message).encode() + b"\n")

    async def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._opened.aclose()


async def start_stdio(server: McpServer, where: Surroundings) -> StdioLink:
    """The server's process, started; `LinkError` when it cannot be."""
    opened = AsyncExitStack()
    try:
        process = await opened.enter_async_context(
            kept_process(
                [server.command or "", *server.args],
                cwd=where.directory,
                env={**where.environment, **server.env},
                execution=where.execution,
                marks=where.marks,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # What it says there may be anything, also its secrets.
                stderr=subprocess.DEVNULL,
                grace=where.grace,
                keepers=where.keepers,
            )
        )
    except (OSError, ValueError) as error:
        raise LinkError(f"it cannot be started: {error}") from error
    return StdioLink(process, opened)


def heard_in(text: bytes | str) -> Iterator[Mapping[str, Any]]:
    """The messages in a line, or in the data of an event; what is none is passed over."""
    try:
        message = json.loads(text)
    except ValueError:
        return
    for one in message if isinstance(message, list) else [message]:
        if isinstance(one, Mapping):
            yield one


def answer_to(id: Any, message: Mapping[str, Any]) -> Message | None:
    """The message, if it is the answer to request `id`."""
    is_answer = message.get("id") == id and "method" not in message
    return dict(message) if is_answer else None


def reply_to(message: Mapping[str, Any]) -> Message | None:
    """What a server's own request is answered: a ping with life, anything else with regret."""
    if "method" not in message or "id" not in message:
        return None
    if message["method"] == "ping":
        return {"jsonrpc": "2.0", "id": message["id"], "result": {}}
    error = {"code": METHOD_NOT_FOUND, "message": "this client has no such method"}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}


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

    async def send_only(self, message: Message) -> None:
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
        await self.send_only(message)

        def work() -> Message:
            for event in self._events:
                for heard in heard_in(event.data):
                    answer = answer_to(message["id"], heard)
                    if answer is not None:
                        return answer
            raise LinkError("its stream has ended")

        return await in_thread(work, self._stream, keep=True)

    async def send_only(self, message: Message) -> None:
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
