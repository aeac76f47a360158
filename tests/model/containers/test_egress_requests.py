"""Requests to the egress proxy are read in one way only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.containers.egress import Destination
from nightherd.model.containers.egress_requests import (
    BadRequestError,
    PlainRequest,
    chunk_length,
    parse_head,
    plain_request,
    plain_target,
    response_head,
    target_text,
    tunnel_target,
)

API = Destination("api.example", 80)


def plain(text: str) -> PlainRequest | None:
    """The request in `text`, whose lines end with CRLF, as it is sent on."""
    head = parse_head(text.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n")
    destination = plain_target(head)
    return None if destination is None else plain_request(head, destination)


def test_a_request_is_sent_on_without_what_concerns_the_proxy() -> None:
    request = plain(
        "POST http://API.example:80/a?b=http://c HTTP/1.1\nHost: api.example.\nX-Kept: 1\nConnection: keep-alive, X-Own\n"
        "X-Own: 2\nProxy-Authorization: Basic eA==\nProxy-Connection: keep-alive\nUpgrade: h2c\nHTTP2-Settings: x\n"
        "TE: trailers\nKeep-Alive: 5\nContent-Length: 3"
    )

    assert request is not None
    assert request.destination == API
    assert request.length == 3
    assert request.head == (
        b"POST /a?b=http://c HTTP/1.1\r\nHost: api.example\r\nX-Kept: 1\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("http://api.example", b"GET / HTTP/1.1"),
        ("http://api.example?x", b"GET /?x HTTP/1.1"),
        ("HTTP://api.example//evil.test/", b"GET //evil.test/ HTTP/1.1"),
        ("http://api.example/@evil.test", b"GET /@evil.test HTTP/1.1"),
    ],
)
def test_the_path_is_what_follows_the_host(target: str, line: bytes) -> None:
    request = plain(f"GET {target} HTTP/1.1\nHost: api.example")

    assert request is not None
    assert request.head.startswith(line + b"\r\nHost: api.example\r\n")
    assert request.length == 0


def test_a_chunked_body_and_the_connection_header_cannot_remove_framing() -> None:
    chunked = plain(
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nTransfer-Encoding: Chunked\n"
        "Connection: Transfer-Encoding, Host, Content-Length"
    )
    sized = plain(
        "POST http://api.example:8080/ HTTP/1.1\nHost: api.example:8080\nContent-Length: 0\nConnection: Content-Length, Host"
    )

    assert chunked is not None
    assert sized is not None
    assert chunked.length is None
    assert b"\r\nTransfer-Encoding: chunked\r\n" in chunked.head
    assert b"Host: api.example\r\n" in chunked.head
    assert b"Host: api.example:8080\r\nContent-Length: 0\r\n" in sized.head


@pytest.mark.parametrize(
    "text",
    [
        "GET / HTTP/1.1\nHost: api.example",
        "GET https://api.example/ HTTP/1.1\nHost: api.example",
        "GET ftp://api.example/ HTTP/1.1\nHost: api.example",
        "GET http://api.example/#x HTTP/1.1\nHost: api.example",
        "GET http://api.example\\@evil.test/ HTTP/1.1\nHost: api.example",
        "GET http://api.example/ HTTP/1.1",
        "GET http://api.example/ HTTP/1.1\nHost: evil.test",
        "GET http://api.example/ HTTP/1.1\nHost: api.example:81",
        "GET http://api.example/ HTTP/1.1\nHost: api.example\nHost: evil.test",
        "GET http://api.example/ HTTP/1.1\nHost: api.example\nhost: api.example",
        "GET http://api.example/ HTTP/1.1\nHost : api.example",
        "GET http://api.example/ HTTP/1.1\nHost: api.example\nX: a\n folded",
        "GET http://api.example/ HTTP/1.1\nHost: api.example\n",
        "GET http://api.example/ HTTP/1.1\nHost: api.example\n: empty",
        "GET http://api.example/ HTTP/1.1\nHost: api.example\nX\x00: y",
        "GET http://api.example/ HTTP/1.1\nHost: api.example\nX: \x00",
        "GET http://api.example/ HTTP/1.1\nHost: api.example\nX: a\rHost: evil.test",
        "GET  http://api.example/ HTTP/1.1\nHost: api.example",
        "GET http://api.example/ x HTTP/1.1\nHost: api.example",
        "GET http://api.example/ HTTP/2.0\nHost: api.example",
        "GET http://api.example/\nHost: api.example",
        "GET http://api.example/\xfc HTTP/1.1\nHost: api.example",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nContent-Length: 1\nContent-Length: 2",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nContent-Length: 1\nContent-Length: 1",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nContent-Length: 1, 1",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nContent-Length: +1",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nContent-Length: -1",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nContent-Length: 0x1",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nContent-Length: 1_0",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nContent-Length: ",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nContent-Length: 1\nTransfer-Encoding: chunked",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nTransfer-Encoding: gzip, chunked",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nTransfer-Encoding: \x0bchunked",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nTransfer-Encoding: xchunked",
        "POST http://api.example/ HTTP/1.1\nHost: api.example\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked",
        "POST http://api.example/ HTTP/1.0\nHost: api.example\nTransfer-Encoding: chunked",
        "GET http://api.example/ HTTP/1.1\nHost: api.example\n" + "\n".join(["X: y"] * 200),
        "GET http://api.example/ HTTP/1.1\nHost: api.example\nX: " + "y" * 70_000,
    ],
)
def test_requests_that_could_be_read_in_two_ways_are_refused(text: str) -> None:
    with pytest.raises(BadRequestError):
        plain(text)


def test_bare_line_feeds_are_refused() -> None:
    with pytest.raises(BadRequestError):
        parse_head(b"GET http://api.example/ HTTP/1.1\nHost: api.example\r\n\r\n")
    with pytest.raises(BadRequestError):
        parse_head(b"GET http://api.example/ HTTP/1.1\r\nHost: api.example\nX: y\r\n\r\n")


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1/", "http://[::1]/", "http://2130706433/", "http://u@api.example/", "http:///", "http://api.example:0/"],
)  # fmt: skip
def test_what_is_no_host_has_no_destination(target: str) -> None:
    assert plain(f"GET {target} HTTP/1.1\nHost: x") is None


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (b"http://10.0.0.1/x:1", "10.0.0.1:80"),
        (b"http://10.0.0.1:80", "10.0.0.1:80"),
        (b"http://[::1]", "[::1]:80"),
        (b"HTTP://[::1]:8080?x", "[::1]:8080"),
    ],
)
def test_a_target_is_shown_with_its_port(target: bytes, text: str) -> None:
    head = parse_head(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")

    assert target_text(head) == text


def test_tunnels() -> None:
    head = parse_head(b"CONNECT API.example:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    address = parse_head(b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n")

    assert head.is_connect
    assert tunnel_target(head) == Destination("api.example", 443)
    assert tunnel_target(address) is None
    assert target_text(address) == "127.0.0.1:443"
    for body in (b"Content-Length: 5", b"Transfer-Encoding: chunked"):
        with pytest.raises(BadRequestError):
            tunnel_target(parse_head(b"CONNECT api.example:443 HTTP/1.1\r\n" + body + b"\r\n\r\n"))


@pytest.mark.parametrize(("line", "size"), [(b"0", 0), (b"fF", 255), (b"10;x=y", 16), (b"1 ", 1)])
def test_sizes_of_chunks(line: bytes, size: int) -> None:
    assert chunk_length(line) == size


@pytest.mark.parametrize(
    "line", [b"", b"-1", b"+1", b"0x1", b"1\n", b"1\r", b"g", b"f" * 16, b" 1", b"1_0", b"1;\x00"]
)
def test_what_is_no_size_of_a_chunk(line: bytes) -> None:
    with pytest.raises(BadRequestError):
        chunk_length(line)


def test_a_response_says_that_the_connection_ends() -> None:
    head = b"HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Own\r\nX-Own: 1\r\nContent-Length: 2\r\nKeep-Alive: 5\r\n\r\n"

    assert response_head(head) == (
        200,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n",
    )
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert response_head(interim) == (100, interim)
    assert response_head(b"ICY 200 OK\r\n\r\n") is None


HEADS = st.lists(
    st.sampled_from(
        [b"GET ", b"CONNECT ", b"http://", b"api.example", b"evil.test", b":80", b"@", b"/", b" HTTP/1.1", b"\r\n", b"\n", b"\r",
         b"Host: ", b"Content-Length: ", b"Transfer-Encoding: chunked", b"Connection: ", b"1", b" ", b"\t", b"\x00", b"\xff"]
    ),
    max_size=20,
).map(b"".join)  # fmt: skip


@given(st.one_of(HEADS, st.binary(max_size=100)))
def test_what_is_sent_on_is_one_request_for_that_host(raw: bytes) -> None:
    try:
        head = parse_head(raw + b"\r\n\r\n")
        destination = plain_target(head)
        if destination is None:
            return
        request = plain_request(head, destination)
    except BadRequestError:
        return
    lines = request.head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    names = [line.partition(b":")[0].lower() for line in lines[1:]]
    assert b"\n" not in request.head.replace(b"\r\n", b"")
    assert b"\r\n\r\n" not in request.head[:-4]
    assert names.count(b"host") == names.count(b"connection") == 1
    assert names.count(b"content-length") + names.count(b"transfer-encoding") <= 1
    again = parse_head(request.head)
    assert again.target.startswith(b"/")
