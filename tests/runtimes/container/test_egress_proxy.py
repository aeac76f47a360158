"""The egress proxy on real sockets: what it reaches, what it refuses, and how it ends."""

from __future__ import annotations

import socket
import ssl
import threading
from functools import partial
from pathlib import Path

import anyio
import pytest

from components import Components
from nightherd.model.containers.egress import EgressRules
from nightherd.model.containers.policy import AllowedHost
from nightherd.runtimes.container.egress import MOST_REPORTED, EgressLimits, Refusal, egress_proxy
from runtimes.container.origin import (
    OK,
    Proxy,
    certificate,
    here,
    origin,
    read_all,
    rules,
    with_proxy,
)

GET = b"GET http://api.example:%d/path HTTP/1.1\r\nHost: api.example:%d\r\n\r\n"


def test_a_request_for_an_allowed_host_is_answered() -> None:
    with origin() as server:
        answer = with_proxy(
            rules(("api.example", server.port)),
            lambda proxy: proxy.ask(GET % (server.port, server.port)),
        )
        sent = server.wait()

    assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    assert sent == b"GET /path HTTP/1.1\r\nHost: api.example:%d\r\nConnection: close\r\n\r\n" % (
        server.port
    )


def test_a_tunnel_to_an_allowed_host(components: Components, tmp_path: Path) -> None:
    contexts = certificate(components.program("openssl"), tmp_path, "api.example")

    def work(proxy: Proxy) -> bytes:
        connection, status = proxy.tunnel(f"API.example.:{server.port}")
        assert status.startswith(b"HTTP/1.1 200 ")
        with contexts[1].wrap_socket(connection, server_hostname="api.example") as stream:
            stream.sendall(b"x" * 300_000 + b"\r\n\r\n")
            return read_all(stream)

    with origin(OK, contexts[0]) as server:
        answer = with_proxy(rules(("api.example", server.port)), work)
        assert len(server.wait()) == 300_004

    assert answer == OK


@pytest.mark.parametrize(
    "target",
    [
        *("evil.test:{port}", "api.example:1", "x.api.example:{port}", "api.example.evil.test:{port}"),
        *("127.0.0.1:{port}", "[::1]:{port}", "2130706433:{port}", "0x7f000001:{port}", "0177.1:{port}"),
        *("127.0.0.1.:{port}", "localhost:{port}", "u@api.example:{port}", "api.example:0{port}"),
        *("api.example", "api.example:", "*.api.example:{port}", "api.example:{port}@evil.test:1"),
    ],
)  # fmt: skip
def test_other_destinations_are_refused_and_reported_once(target: str) -> None:
    def work(proxy: Proxy) -> tuple[list[bytes], list[Refusal]]:
        text = target.format(port=server.port).encode()
        asked = b"CONNECT " + text + b" HTTP/1.1\r\n\r\n"
        plain = b"GET http://" + text + b"/ HTTP/1.1\r\nHost: " + text + b"\r\n\r\n"
        is_plain_too = target not in ("api.example", "api.example:")
        answers = [proxy.ask(asked), proxy.ask(asked)]
        return answers + ([proxy.ask(plain)] if is_plain_too else []), proxy.refused

    with origin() as server:
        answers, refused = with_proxy(rules(("api.example", server.port)), work)

    assert all(answer.startswith(b"HTTP/1.1 403 Forbidden\r\n") for answer in answers)
    assert len(refused) == 1
    assert server.got == []
    assert "@" not in refused[0].destination


def test_requests_for_other_schemes_and_broken_ones_are_not_served() -> None:
    def work(proxy: Proxy) -> list[bytes]:
        return [
            proxy.ask(b"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"),
            proxy.ask(b"GET https://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n"),
            proxy.ask(b"\x05\x01\x00", then_end=True),
            proxy.ask(b"X" * 100_000),
            proxy.ask(b"nonsense\r\n\r\n"),
        ]

    first, second, third, fourth, fifth = with_proxy(rules(("api.example", 80)), work)

    assert third == b""
    assert {one[:12] for one in (first, second, fourth, fifth)} == {b"HTTP/1.1 400"}


@pytest.mark.parametrize(
    "addresses",
    [
        *(["127.0.0.1"], ["169.254.169.254"], ["10.0.0.1"], ["::1"], ["::ffff:127.0.0.1"]),
        *(["0.0.0.0"], ["fd00:ec2::254"], ["168.63.129.16"], ["10.0.0.1", "127.0.0.1"]),
    ],
)
def test_a_name_that_stands_for_a_private_address_is_refused(addresses: list[str]) -> None:
    def work(proxy: Proxy) -> tuple[bytes, list[Refusal]]:
        return proxy.ask(GET % (server.port, server.port)), proxy.refused

    with origin() as server:
        answer, refused = with_proxy(
            rules(("api.example", server.port)),
            work,
            resolve=lambda _name, _port: addresses,
            allow_private=False,
        )

    assert answer.startswith(b"HTTP/1.1 403 ")
    assert refused == [
        Refusal(
            destination=f"api.example:{server.port}",
            reason="its name stands for an address that is not public",
        )
    ]
    assert server.got == []


def test_an_address_that_changes_after_the_look_up_is_not_used() -> None:
    looked_up: list[str] = []

    def rebinding(name: str, _port: int) -> list[str]:
        """Public when first asked, this machine afterwards."""
        looked_up.append(name)
        return ["192.0.2.1"] if len(looked_up) == 1 else ["127.0.0.1"]

    def work(proxy: Proxy) -> list[bytes]:
        return [proxy.ask(GET % (server.port, server.port)) for _ in range(2)]

    with origin() as server:
        answers = with_proxy(
            rules(("api.example", server.port)), work, resolve=rebinding, allow_private=False
        )

    assert looked_up == ["api.example"] * 2, "once for each connection, which uses that answer"
    assert all(answer.startswith(b"HTTP/1.1 403 ") for answer in answers)
    assert server.got == []


def test_an_implied_host_may_be_private_and_others_beside_it_may_not() -> None:
    def work(proxy: Proxy) -> tuple[bytes, bytes]:
        other = b"GET http://b.example:%d/ HTTP/1.1\r\nHost: b.example:%d\r\n\r\n"
        return proxy.ask(GET % (server.port, server.port)), proxy.ask(
            other % (server.port, server.port)
        )

    with origin() as server:
        allowed = EgressRules(
            allowed=(AllowedHost(name="b.example", port=server.port),),
            implied=(AllowedHost(name="api.example", port=server.port),),
        )
        implied, other = with_proxy(allowed, work, allow_private=False)

    assert implied.startswith(b"HTTP/1.1 200 ")
    assert other.startswith(b"HTTP/1.1 403 ")


def test_a_host_that_has_no_address_or_does_not_answer_is_a_bad_gateway() -> None:
    def unknown(_name: str, _port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    request = GET % (port, port)

    def nowhere(_name: str, _port: int) -> list[str]:
        return []

    answers = [
        with_proxy(rules(("api.example", port)), lambda proxy: proxy.ask(request), resolve=found)
        for found in (unknown, here, nowhere)
    ]

    assert all(answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n") for answer in answers)
    assert b"Name or service not known" in answers[0]


@pytest.mark.parametrize("name", ["evil.test", None])
def test_a_tunnel_whose_hello_names_another_host_is_closed(name: str | None) -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def work(proxy: Proxy) -> list[str]:
        connection, status = proxy.tunnel(f"api.example:{server.port}")
        assert status.startswith(b"HTTP/1.1 200 ")
        with connection, pytest.raises(ssl.SSLError, match=r"(?i)access.denied"):
            context.wrap_socket(connection, server_hostname=name)
        return proxy.destinations

    with origin() as server:
        destinations = with_proxy(rules(("api.example", server.port)), work)
        assert server.wait() == b""

    assert destinations == [f"{name or 'api.example'}:{server.port}"]


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n", b"SSH-2.0-x\r\n", b"\x16\x03\x01\xff\xff"]
)  # fmt: skip
def test_a_tunnel_is_for_tls_only(data: bytes) -> None:
    def work(proxy: Proxy) -> list[str]:
        connection, _ = proxy.tunnel(f"api.example:{server.port}")
        with connection:
            connection.sendall(data)
            read_all(connection)
        return proxy.destinations

    with origin() as server:
        destinations = with_proxy(rules(("api.example", server.port)), work)
        assert server.wait() == b""

    assert destinations == [f"api.example:{server.port}"]


def test_nothing_after_the_body_of_a_request_is_sent_on() -> None:
    second = b"GET http://api.example/admin HTTP/1.1\r\nHost: api.example\r\n\r\n"

    def work(proxy: Proxy) -> list[bytes]:
        start = b"POST http://api.example:%d/ HTTP/1.1\r\nHost: api.example:%d\r\n" % (
            server.port,
            server.port,
        )
        got = []
        for rest in (
            b"\r\n",
            b"Content-Length: 3\r\n\r\nabc",
            b"Content-Length: 0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: trailer\r\n\r\n",
        ):
            assert proxy.ask(start + rest + second).count(b"HTTP/1.1 200") == 1
            got.append(server.wait().partition(b"\r\n\r\n")[2])
        return got

    with origin() as server:
        bodies = with_proxy(rules(("api.example", server.port)), work)

    assert bodies == [b"", b"abc", b"", b"3\r\nabc\r\n0\r\n\r\n"]


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\n\r\n",
        b"Content-Length: 3\r\nContent-Length: 50\r\n\r\nabc",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"Host: evil.test\r\n\r\n",
        b"X: y\nContent-Length: 3\r\n\r\nabc",
        b" folded: x\r\n\r\n",
    ],
)
def test_requests_of_unclear_length_reach_no_server(rest: bytes) -> None:
    with origin() as server:
        start = b"POST http://api.example:%d/ HTTP/1.1\r\nHost: api.example:%d\r\n" % (
            server.port,
            server.port,
        )
        answer = with_proxy(
            rules(("api.example", server.port)), lambda proxy: proxy.ask(start + rest)
        )

    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert server.got == []


@pytest.mark.parametrize("chunk", [b"3\r\nabcX0\r\n\r\n", b"zz\r\n", b"-1\r\n", b"3\nabc"])
def test_a_body_with_broken_chunks_is_never_completed(chunk: bytes) -> None:
    # The server answers only when all is there.
    with origin(b"") as server:
        start = b"POST http://api.example:%d/ HTTP/1.1\r\nHost: api.example:%d\r\n" % (
            server.port,
            server.port,
        )
        with_proxy(
            rules(("api.example", server.port)),
            lambda proxy: proxy.ask(
                start + b"Transfer-Encoding: chunked\r\n\r\n" + chunk, then_end=True
            ),
        )
        sent = server.wait()

    assert not sent.endswith(b"0\r\n\r\n")


def test_interim_responses_are_passed_on_and_upgrades_are_not() -> None:
    hinted = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK
    answers = []
    for response in (hinted, b"HTTP/1.1 101 Switching\r\n\r\nraw", b"nonsense\r\n\r\n", b""):
        with origin(response) as server:
            request = GET % (server.port, server.port)
            ask = partial(Proxy.ask, data=request)
            answers.append(with_proxy(rules(("api.example", server.port)), ask))

    assert answers[0].startswith(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert all(answer.startswith(b"HTTP/1.1 502 ") for answer in answers[1:])


def test_the_number_of_reports_is_bounded() -> None:
    def work(proxy: Proxy) -> list[str]:
        for number in range(MOST_REPORTED + 20):
            proxy.ask(b"CONNECT h%d.test:443 HTTP/1.1\r\n\r\n" % number)
        return proxy.destinations

    destinations = with_proxy(rules(), work)

    assert len(destinations) == MOST_REPORTED + 1
    assert destinations[-1] == "more hosts"


def test_more_connections_than_allowed_wait_and_silent_ones_are_closed() -> None:
    def work(proxy: Proxy) -> tuple[bytes, bytes]:
        silent = [proxy.connect() for _ in range(2)]
        answer = proxy.ask(GET % (server.port, server.port))
        told = read_all(silent[0])
        for connection in silent:
            connection.close()
        return answer, told

    with origin() as server:
        answer, told = with_proxy(
            rules(("api.example", server.port)),
            work,
            limits=EgressLimits(connections=2, head_s=0.2),
        )

    assert told.startswith(b"HTTP/1.1 408 ")
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_tunnel_in_which_nothing_moves_is_closed(components: Components, tmp_path: Path) -> None:
    contexts = certificate(components.program("openssl"), tmp_path, "api.example")

    def work(proxy: Proxy) -> bytes:
        connection, _ = proxy.tunnel(f"api.example:{server.port}")
        with contexts[1].wrap_socket(
            connection, server_hostname="api.example", suppress_ragged_eofs=True
        ) as stream:
            return read_all(stream)

    with origin(OK, contexts[0]) as server:
        answer = with_proxy(
            rules(("api.example", server.port)), work, limits=EgressLimits(idle_s=0.3)
        )
        assert server.wait() == b""

    assert answer == b""


def test_open_connections_end_with_the_proxy_also_when_it_is_cancelled() -> None:
    held: list[socket.socket] = []

    async def run(server_port: int) -> int:
        refused: list[Refusal] = []
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        with anyio.CancelScope() as scope:
            async with egress_proxy(
                listener,
                rules(("api.example", server_port)),
                refused.append,
                resolve=here,
                allow_private=True,
            ) as port:
                proxy = Proxy(port, refused)
                tunnel, status = await anyio.to_thread.run_sync(
                    proxy.tunnel, f"api.example:{server_port}"
                )
                assert status.startswith(b"HTTP/1.1 200 ")
                held.extend([tunnel, proxy.connect()])
                scope.cancel()
                await anyio.sleep_forever()
        return int(port)

    with origin() as server:
        port = anyio.run(run, server.port)
        assert server.wait() == b"", "its connection to the server is closed"
    for connection in held:
        assert read_all(connection) == b""
        connection.close()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    assert "egress-proxy" not in [thread.name for thread in threading.enumerate()]


def test_a_slow_look_up_does_not_hold_up_the_end() -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def slow(_name: str, _port: int) -> list[str]:
        is_asked.set()
        may_answer.wait(30)
        return ["127.0.0.1"]

    def work(proxy: Proxy) -> socket.socket:
        connection = proxy.connect()
        connection.sendall(GET % (80, 80))
        assert is_asked.wait(30)
        return connection

    try:
        with with_proxy(rules(("api.example", 80)), work, resolve=slow) as connection:
            assert read_all(connection) == b""
    finally:
        may_answer.set()
