"""What the egress proxy passes on: the bytes of a tunnel, or exactly one request and its response."""

from __future__ import annotations

from anyio import (
    BrokenResourceError,
    CancelScope,
    DelimiterNotFound,
    EndOfStream,
    IncompleteRead,
    create_task_group,
    current_time,
)
from anyio.abc import ByteReceiveStream, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from nightherd.model.containers.egress_requests import (
    END_OF_HEAD,
    LONGEST_HEAD,
    BadRequestError,
    PlainRequest,
    chunk_length,
    response_head,
)

PIECE = 64 * 1024
LONGEST_CHUNK_LINE = 1024
MOST_TRAILERS = 100
SWITCHING_PROTOCOLS = 101


class _EnoughError(Exception):
    """Raised when a server does not take the rest of a request; it may still say why."""


class _Idle:
    """Ends what is going on when no byte has moved for a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.scope = CancelScope(deadline=current_time() + seconds)

    def moved(self) -> None:
        self.scope.deadline = current_time() + self._seconds


async def splice(
    received: ByteReceiveStream, client: SocketStream, server: SocketStream, idle_s: float
) -> None:
    """Copy both ways until both sides have ended, one fails, or nothing moves. `received` is what the client sends."""
    idle = _Idle(idle_s)
    with idle.scope:
        async with create_task_group() as tasks:
            tasks.start_soon(_copy, received, server, idle)
            tasks.start_soon(_copy, server, client, idle)


async def exchange(
    request: PlainRequest,
    body: BufferedByteReceiveStream,
    client: SocketStream,
    server: SocketStream,
    idle_s: float,
) -> bool:
    """Send one request with its body, and the response to the client; False when there was no response.

    Nothing that the client sends after the body is passed on.
    """
    idle = _Idle(idle_s)
    head: bytes | None = None
    with idle.scope:
        async with create_task_group() as tasks:
            tasks.start_soon(_send_request, request, body, server, idle)
            received = BufferedByteReceiveStream(server)
            head = await _final_head(received, client, idle)
            if head is not None:
                await client.send(head)
                await _copy(received, client, idle)
            tasks.cancel_scope.cancel()
    return head is not None


async def _copy(source: ByteReceiveStream, sink: SocketStream, idle: _Idle) -> None:
    try:
        while True:
            piece = await source.receive(PIECE)
            idle.moved()
            await sink.send(piece)
            idle.moved()
    except EndOfStream:
        await sink.send_eof()


async def _send_request(
    request: PlainRequest, body: BufferedByteReceiveStream, server: SocketStream, idle: _Idle
) -> None:
    try:
        await _send(server, request.head, idle)
        if request.length is None:
            await _send_chunks(body, server, idle)
        else:
            await _send_bytes(request.length, body, server, idle)
    except _EnoughError:
        return


async def _send(server: SocketStream, data: bytes, idle: _Idle) -> None:
    try:
        await server.send(data)
    except BrokenResourceError as error:
        raise _EnoughError from error
    idle.moved()


async def _send_bytes(
    size: int, body: BufferedByteReceiveStream, server: SocketStream, idle: _Idle
) -> None:
    while size > 0:
        piece = await body.receive(min(size, PIECE))
        size -= len(piece)
        await _send(server, piece, idle)


async def _send_chunks(body: BufferedByteReceiveStream, server: SocketStream, idle: _Idle) -> None:
    """Send the chunks on in our own words; extensions and trailers are left out."""
    while size := chunk_length(await body.receive_until(b"\r\n", LONGEST_CHUNK_LINE)):
        await _send(server, b"%x\r\n" % size, idle)
        await _send_bytes(size, body, server, idle)
        if await body.receive_exactly(2) != b"\r\n":
            raise BadRequestError("a chunk of the body is longer than its size")
        await _send(server, b"\r\n", idle)
    for _ in range(MOST_TRAILERS):
        if not await body.receive_until(b"\r\n", LONGEST_HEAD):
            await _send(server, b"0\r\n\r\n", idle)
            return
    raise BadRequestError("the body has too many trailers")


async def _final_head(
    received: BufferedByteReceiveStream, client: SocketStream, idle: _Idle
) -> bytes | None:
    """The head of the response for the client, who has got what came before it; None when there is none."""
    while True:
        try:
            head = await received.receive_until(END_OF_HEAD, LONGEST_HEAD) + END_OF_HEAD
        except (IncompleteRead, DelimiterNotFound, BrokenResourceError):
            return None
        idle.moved()
        response = response_head(head)
        if response is None or response[0] == SWITCHING_PROTOCOLS:
            return None
        status, made = response
        if status >= 200:
            return made
        await client.send(made)
