"""The egress proxy: the only way out of a container with `network: egress`.

It runs in the worker, in a thread of its own, and accepts on a socket inside the container's network namespace. CONNECT and
requests for `http://` reach allowed hosts by name. A tunnel must begin with a TLS ClientHello that names the same host.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import msgspec
from anyio import from_thread, lowlevel, to_thread
from anyio.abc import SocketStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

from nightherd.model.containers.client_hello import HelloError, HelloReader
from nightherd.model.containers.egress import Destination, EgressRules
from nightherd.model.containers.egress_requests import (
    END_OF_HEAD,
    LONGEST_HEAD,
    BadRequestError,
    RequestHead,
    parse_head,
    plain_request,
    plain_target,
    target_text,
    tunnel_target,
)
from nightherd.runtimes.container.dial import (
    DIALED_S,
    Dialer,
    RefusedAddressError,
    Resolve,
    resolve,
)
from nightherd.runtimes.container.relay import PIECE, exchange, splice

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
ACCESS_DENIED = b"\x15\x03\x03\x00\x02\x02\x31"
"""A fatal alert of TLS, so that a client says why."""
REASONS = {400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 502: "Bad Gateway"}
MOST_REPORTED = 100
"""Refused destinations of one run that are reported."""
LONGEST_REPORTED = 300
LINGER_S = 2.0
"""How long a client that was refused may take to read why."""
RETRY_S = 0.1
STOPPED_S = 10.0


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A destination that was not reached, and why."""

    destination: str
    reason: str


class EgressLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What clients may use of the proxy."""

    connections: int = 48
    """At the same time; further ones wait. Each takes two descriptors of the worker, which other runs need too."""
    head_s: float = 30.0
    """For the head of a request, and for the ClientHello."""
    idle_s: float = 900.0
    """Without a byte in either direction: models may think for minutes."""


Refused = Callable[[Refusal], None]


@asynccontextmanager
async def egress_proxy(
    listener: socket.socket,
    rules: EgressRules,
    refused: Refused,
    *,
    resolve: Resolve = resolve,
    allow_private: bool = False,
    limits: EgressLimits | None = None,
) -> AsyncIterator[int]:
    """The port of a proxy that accepts on `listener`; every connection is closed, and the listener too, when the block is left.

    `refused` is called once for each destination, in another thread. With `allow_private`, names may have any address.
    """
    port = int(listener.getsockname()[1])
    dialer = Dialer(rules, resolve, allow_private)
    proxy = _Proxy(listener, rules, refused, dialer, limits or EgressLimits())
    thread = threading.Thread(target=proxy.run, name="egress-proxy", daemon=True)
    thread.start()
    try:
        yield port
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(proxy.stop)
            await to_thread.run_sync(thread.join, STOPPED_S)


class _Proxy:
    """A server with an event loop of its own."""

    def __init__(
        self,
        listener: socket.socket,
        rules: EgressRules,
        refused: Refused,
        dialer: Dialer,
        limits: EgressLimits,
    ) -> None:
        self._listener = listener
        self._rules = rules
        self._refused = refused
        self._dialer = dialer
        self._limits = limits
        self._reported: set[str] = set()
        self._loop: lowlevel.EventLoopToken | None = None
        self._scope: anyio.CancelScope | None = None
        self._is_started = threading.Event()

    def run(self) -> None:
        """Serve until `stop`."""
        try:
            anyio.run(self._serve)
        finally:
            self._is_started.set()
            self._listener.close()

    def stop(self) -> None:
        """Close every connection. Called in another thread."""
        self._is_started.wait()
        if self._scope is not None and self._loop is not None:
            try:
                from_thread.run_sync(self._scope.cancel, token=self._loop)
            except RuntimeError:  # it has ended
                pass

    async def _serve(self) -> None:
        with anyio.CancelScope() as scope:
            self._scope, self._loop = scope, lowlevel.current_token()
            self._is_started.set()
            async with anyio.create_task_group() as tasks:
                await self._accept(tasks)

    async def _accept(self, tasks: TaskGroup) -> None:
        """Accept for ever. Not in the event loop's own way: cancelled at the wrong moment, that loses a connection."""
        self._listener.setblocking(False)
        free = anyio.Semaphore(self._limits.connections)
        while True:
            await free.acquire()
            connection = None
            while connection is None:
                await anyio.wait_readable(self._listener)
                try:
                    connection, _ = self._listener.accept()
                except (BlockingIOError, ConnectionAbortedError):
                    continue
                except OSError:  # no descriptor is left
                    await anyio.sleep(RETRY_S)
            tasks.start_soon(self._attend, connection, free)

    async def _attend(self, connection: socket.socket, free: anyio.Semaphore) -> None:
        try:
            with connection:  # also when it is cancelled before there is a stream
                async with await SocketStream.from_socket(connection) as client:
                    await _Connection(client, self._limits, self._dialer, self._report).serve()
        except Exception:  # noqa: BLE001, S110 (an edge: a connection that fails must not end the others)
            pass
        finally:
            free.release()

    def _report(self, destination: str, reason: str) -> None:
        """Report a destination, once, and not endlessly many."""
        shown = destination.rpartition("@")[2][:LONGEST_REPORTED]
        if shown in self._reported or len(self._reported) > MOST_REPORTED:
            return
        self._reported.add(shown)
        if len(self._reported) > MOST_REPORTED:
            shown, reason = "more hosts", f"only the first {MOST_REPORTED} are listed"
        self._refused(Refusal(destination=shown, reason=reason))


class _Connection:
    """One connection of a client, which has one request."""

    def __init__(
        self,
        client: SocketStream,
        limits: EgressLimits,
        dialer: Dialer,
        report: Callable[[str, str], None],
    ) -> None:
        self._client = client
        self._input = BufferedByteReceiveStream(client)
        self._limits = limits
        self._dialer = dialer
        self._report = report

    async def serve(self) -> None:
        """Read the request and do what it asks for, or answer why not."""
        try:
            with anyio.fail_after(self._limits.head_s):
                head = parse_head(
                    await self._input.receive_until(END_OF_HEAD, LONGEST_HEAD - 4) + END_OF_HEAD
                )
            await (self._tunnel(head) if head.is_connect else self._forward(head))
        except BadRequestError as error:
            await self._answer(400, str(error))
        except anyio.DelimiterNotFound:
            await self._answer(400, "the head of the request is too long")
        except TimeoutError:
            await self._answer(408, "the request did not come in time")

    async def _tunnel(self, head: RequestHead) -> None:
        destination = tunnel_target(head)
        server = await self._dial(destination, target_text(head))
        if server is None or destination is None:
            return
        async with server:
            await self._client.send(ESTABLISHED)
            hello = await self._hello(destination)
            if hello:
                await server.send(hello)
                await splice(self._input, self._client, server, self._limits.idle_s)

    async def _hello(self, destination: Destination) -> bytes:
        """The first bytes of a tunnel, once they name its host; none when they do not, or when there are none."""
        reader = HelloReader()
        received = bytearray()
        try:
            with anyio.fail_after(self._limits.head_s):
                while not reader.feed(piece := await self._input.receive(PIECE)):
                    received += piece
                received += piece
        except anyio.EndOfStream:
            return b""
        except TimeoutError:
            self._report(str(destination), "the connection did not begin with a ClientHello")
            return b""
        except HelloError as error:
            self._report(str(destination), str(error))
            await self._end(ACCESS_DENIED)
            return b""
        if reader.name == destination.name:
            return bytes(received)
        self._report(
            f"{reader.name}:{destination.port}",
            f"the ClientHello names it in a connection to {destination}",
        )
        await self._end(ACCESS_DENIED)
        return b""

    async def _forward(self, head: RequestHead) -> None:
        destination = plain_target(head)
        # Before anything is connected: a body of unclear length reaches no server.
        request = plain_request(head, destination) if destination is not None else None
        server = await self._dial(destination, target_text(head))
        if server is None or request is None:
            return
        async with server:
            if not await exchange(request, self._input, self._client, server, self._limits.idle_s):
                await self._answer(502, f"{destination} did not answer")

    async def _dial(self, destination: Destination | None, text: str) -> SocketStream | None:
        """A connection to the destination; None when the client was answered that there is none."""
        if destination is None:
            await self._refuse(text, "hosts are reached by name; this is an address, or no host")
            return None
        try:
            with anyio.fail_after(DIALED_S):
                return await self._dialer.dial(destination)
        except RefusedAddressError as error:
            await self._refuse(str(destination), str(error))
        except TimeoutError:
            await self._answer(502, f"{destination} cannot be reached in time")
        except (OSError, UnicodeError) as error:
            await self._answer(502, f"{destination} cannot be reached: {error}")
        return None

    async def _refuse(self, destination: str, reason: str) -> None:
        # First: who is told the refusal may end the run on it.
        self._report(destination, reason)
        await self._answer(403, f"{destination[:LONGEST_REPORTED]} is refused: {reason}")

    async def _answer(self, status: int, text: str) -> None:
        body = f"nightherd: {text}\n".encode(errors="replace")
        head = (
            f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        await self._end(head.encode() + body)

    async def _end(self, last: bytes) -> None:
        """Send the last bytes, and read what the client still sends: closing at once could destroy them."""
        with anyio.move_on_after(LINGER_S):
            await self._client.send(last)
            await self._client.send_eof()
            while True:
                try:
                    await self._input.receive(PIECE)
                except anyio.EndOfStream:
                    return
