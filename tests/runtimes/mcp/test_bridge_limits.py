"""What callers of the bridge can use up: an agent in a container knows the token, and must not exhaust the worker with it."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from anyio import to_thread

from nightherd.model.agents.mcp import InjectedMcpServerDef, InjectedMcpToolDef
from nightherd.runtimes.mcp.bridge import bridged
from nightherd.runtimes.mcp.bridge_limits import BridgeLimits, ByteBudget
from runtimes.stage import PATIENCE_S

PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
SOON_S = 0.2
LARGE = 64 * 1024 * 1024
"""More than the buffers of a connection hold."""
RESET = struct.pack("ii", 1, 0)
"""Has a connection end without a word."""

Handler = Callable[[Mapping[str, Any]], Any]


class Caller:
    """Connects to a bridge as a program inside a container may."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self._port = urlsplit(entry["url"]).port
        self._path = urlsplit(entry["url"]).path
        self._authorization = entry["headers"]["Authorization"]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port or 0), PATIENCE_S)

    def head(self, size: int | str, *more: str) -> bytes:
        lines = [f"POST {self._path} HTTP/1.1", f"Authorization: {self._authorization}"]
        return "\r\n".join([*lines, f"Content-Length: {size}", *more, "", ""]).encode("latin-1")

    def post(self, body: bytes) -> bytes:
        return self.head(len(body)) + body

    def call(self, tool: str) -> bytes:
        params = {"name": tool, "arguments": {}}
        return self.post(
            json.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            ).encode()
        )

    def ask(self, request: bytes) -> bytes:
        """The whole answer; nothing when the connection is closed without one."""
        with self.connect() as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return rest_of(connection)


def with_bridge(
    use: Callable[[Caller], Any], *, handler: Handler | None = None, **limits: Any
) -> Any:
    """What `use` returns, called in a thread beside a bridge with these limits."""

    async def greet(_: Mapping[str, Any]) -> str:
        return "hello"

    tool = InjectedMcpToolDef(name="greet", description="Greets.", handler=handler or greet)
    server = InjectedMcpServerDef(name="post", tools=(tool,))

    async def run() -> Any:
        async with bridged([server], limits=BridgeLimits(**limits)) as entries:
            with anyio.fail_after(PATIENCE_S):
                return await to_thread.run_sync(use, Caller(entries["post"]))

    return anyio.run(run)


def rest_of(connection: socket.socket) -> bytes:
    """All that comes until the connection is closed."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def is_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False


def is_fine(answer: bytes) -> bool:
    return answer.startswith(b"HTTP/1.1 200 ")


def test_further_connections_wait_and_take_no_thread() -> None:
    def crowd(caller: Caller) -> tuple[int, bytes]:
        before = threading.active_count()
        silent = [caller.connect() for _ in range(12)]
        answer = caller.ask(caller.post(PING))
        more = threading.active_count() - before
        for connection in silent:
            connection.close()
        return more, answer

    more, answer = with_bridge(crowd, connections=3, message_s=SOON_S)

    assert more <= 3
    assert is_fine(answer)


@pytest.mark.parametrize("sent", [b"", b"POST /po", None], ids=["nothing", "half a head", "half"])
def test_connection_that_does_not_finish_its_request_is_closed(sent: bytes | None) -> None:
    def stay(caller: Caller) -> tuple[bytes, bytes]:
        with caller.connect() as connection:
            connection.sendall(caller.post(PING)[:-5] if sent is None else sent)
            return connection.recv(65536), caller.ask(caller.post(PING))

    ended, answer = with_bridge(stay, connections=1, message_s=SOON_S)

    assert ended == b""
    assert is_fine(answer)


def test_request_that_comes_byte_by_byte_is_cut_off() -> None:
    def trickle(caller: Caller) -> bool:
        with caller.connect() as connection:
            connection.settimeout(0.02)
            try:
                connection.sendall(caller.head(1_000_000))
                while not is_ended(connection):
                    connection.sendall(b" ")
            except ConnectionError:
                pass
        return True

    assert with_bridge(trickle, message_s=SOON_S)


def test_longest_message_and_head() -> None:
    def ask(caller: Caller) -> list[bytes]:
        padded = PING + b" " * (1000 - len(PING))
        return [
            caller.ask(request)[:12]
            for request in (
                caller.post(padded),
                caller.post(padded + b" "),
                caller.head(10**30),
                caller.head("\xb2"),
                caller.head(len(PING), f"X: {'x' * 3000}") + PING,
                caller.head(len(PING), *(f"X-{n}: {'x' * 50}" for n in range(60))) + PING,
            )
        ]

    fine, *refused, line, lines = with_bridge(ask, message_bytes=1000, head_bytes=2000)

    assert fine == b"HTTP/1.1 200"
    assert refused == [b"HTTP/1.1 413"] * 3
    assert (line, lines) == (b"", b"")


def test_message_that_is_nested_too_deeply_is_not_a_request() -> None:
    answer = with_bridge(lambda caller: caller.ask(caller.post(b"[" * 200_000)))

    assert is_fine(answer)
    assert b"-32600" in answer


def test_answer_that_is_not_read_is_given_up() -> None:
    async def shout(_: Mapping[str, Any]) -> str:
        return "x" * LARGE

    def ignore(caller: Caller) -> bytes:
        with caller.connect() as connection:
            connection.sendall(caller.call("greet"))
            return caller.ask(caller.post(PING))

    assert is_fine(with_bridge(ignore, handler=shout, connections=1, answer_s=SOON_S))


def test_calls_of_callers_that_are_gone_count_until_they_are_over() -> None:
    running: list[int] = []
    most: list[int] = []

    async def work(_: Mapping[str, Any]) -> str:
        running.append(1)
        most.append(len(running))
        await anyio.sleep(SOON_S)
        running.pop()
        return "done"

    def leave(caller: Caller) -> bytes:
        for _ in range(10):
            with caller.connect() as connection:
                connection.sendall(caller.call("greet"))
                connection.recv(20)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        return caller.ask(caller.post(PING))

    assert is_fine(with_bridge(leave, handler=work, connections=2, alive_s=0.005))
    assert max(most) <= 2
    assert len(most) == 10


def test_connections_that_wait_make_room() -> None:
    def rest(caller: Caller) -> list[bool]:
        """Each stays open after its answer, as clients keep theirs."""
        kept: list[socket.socket] = []
        answers: list[bytes] = []
        for _ in range(10):
            kept.append(caller.connect())
            kept[-1].sendall(caller.post(PING))
            answers.append(kept[-1].recv(65536))
        for connection in kept:
            connection.close()
        return [is_fine(answer) for answer in answers]

    assert with_bridge(rest, connections=4) == [True] * 10


def test_open_connections_end_with_the_bridge() -> None:
    left: list[socket.socket] = []

    def stay(caller: Caller) -> None:
        for request in (b"", caller.post(PING)):
            left.append(caller.connect())
            left[-1].sendall(request)
        assert is_fine(left[1].recv(65536))

    with_bridge(stay)

    for connection in left:
        with connection:
            rest_of(connection)


def test_memory_is_shared_and_given_back() -> None:
    budget = ByteBudget(100)

    assert budget.take(80, 0)
    assert not budget.take(30, 0)
    assert budget.take(20, 0)
    budget.give(80)
    assert budget.take(30, 0)


def test_message_waits_until_there_is_memory_for_it() -> None:
    def ask(caller: Caller) -> tuple[bytes, bytes]:
        with caller.connect() as connection:
            # Its size is taken when it is announced.
            connection.sendall(caller.head(1000) + b" ")
            refused = caller.ask(caller.post(b" " * 600))[:12]
            connection.sendall(b" " * 999)
            return refused, caller.ask(caller.post(b" " * 600))[:12]

    limits: dict[str, Any] = {"message_bytes": 1000, "total_bytes": 1500}
    refused, answered = with_bridge(ask, message_s=1.0, **limits)

    assert answered == b"HTTP/1.1 200"
    assert refused in (b"HTTP/1.1 503", b"HTTP/1.1 200")
