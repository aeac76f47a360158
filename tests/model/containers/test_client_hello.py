"""The server name of a TLS ClientHello: real ones of OpenSSL, and ones that were made to deceive."""

from __future__ import annotations

import ssl
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nightherd.model.containers.client_hello import LONGEST_HELLO, HelloError, HelloReader

GREASE = 0x2A2A


def real_hello(name: str | None) -> bytes:
    """What OpenSSL sends first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def extension(kind: int, body: bytes) -> bytes:
    return kind.to_bytes(2) + len(body).to_bytes(2) + body


def names(*entries: bytes, kind: int = 0) -> bytes:
    made = b"".join(bytes([kind]) + len(one).to_bytes(2) + one for one in entries)
    return extension(0, len(made).to_bytes(2) + made)


def message(*extensions: bytes, suites: bytes = b"\x13\x01\x2a\x2a", tail: bytes = b"") -> bytes:
    """A ClientHello as a handshake message."""
    joined = b"".join(extensions)
    body = b"\x03\x03" + bytes(32) + b"\x00" + len(suites).to_bytes(2) + suites + b"\x01\x00"
    body += (len(joined).to_bytes(2) + joined if extensions else b"") + tail
    return b"\x01" + len(body).to_bytes(3) + body


def records(data: bytes, size: int = 16_384, kind: int = 22) -> bytes:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(bytes([kind, 3, 1]) + len(one).to_bytes(2) + one for one in pieces)


def name_in(data: bytes) -> str | None:
    reader = HelloReader()
    reader.feed(data)
    return reader.name


def test_a_real_hello_names_its_server() -> None:
    assert name_in(real_hello("API.example")) == "api.example"
    assert name_in(real_hello("b\u00fccher.example")) == "xn--bcher-kva.example"


def test_a_real_hello_without_a_name_is_refused() -> None:
    with pytest.raises(HelloError, match="does not name the server"):
        name_in(real_hello(None))


@given(st.integers(min_value=1, max_value=600), st.integers(min_value=1, max_value=600))
def test_a_hello_in_pieces(record: int, piece: int) -> None:
    data = records(message(extension(GREASE, b""), names(b"api.example")), record) + b"more"
    reader = HelloReader()
    taken = 0

    while not reader.feed(data[taken : taken + piece]):
        taken += piece
        assert taken < len(data)

    assert reader.name == "api.example"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "does not begin with TLS"),
        (b"SSH-2.0-x\r\n", "does not begin with TLS"),
        (b"\x80\x2e\x01\x03\x01" + bytes(44), "does not begin with TLS"),
        (b"\x16\x02\x00\x00\x05hello", "does not begin with TLS"),
        (b"\x16\x03\x01\x00\x00", "does not begin with TLS"),
        (b"\x16\x03\x01\xff\xff", "does not begin with TLS"),
        (records(b"\x02\x00\x00\x00"), "does not begin with a ClientHello"),
        (records(message(names(b"api.example")), kind=23), "does not begin with TLS"),
        (records(message(names(b"api.example"))[:20]) + b"\x15\x03\x01\x00\x02\x01\x00", "TLS"),
        (records(message()), "does not name the server"),
        (records(message(extension(GREASE, b"x"))), "does not name the server"),
        (records(message(names(b"api.example"), names(b"evil.test"))), "does not name the server"),
        (records(message(names(b"api.example", b"evil.test"))), "must name one server"),
        (records(message(names(b"api.example", kind=1))), "must name one server"),
        (records(message(names())), "not valid"),
        (records(message(names(b""))), "not valid"),
        (records(message(names(b"127.0.0.1"))), "not valid"),
        (records(message(names(b"::1"))), "not valid"),
        (records(message(names(b"api.example\x00.evil.test"))), "not valid"),
        (records(message(names("\u00fc.example".encode()))), "not valid"),
        (records(message(names(b"api.example"), extension(0xFE0D, bytes(40)))), "hides the name"),
        (records(message(extension(0xFFCE, bytes(40)), names(b"api.example"))), "hides the name"),
        (records(message(names(b"api.example"), tail=b"x")), "not valid"),
        (records(message(names(b"api.example"), suites=b"")), "not valid"),
        (records(message(names(b"api.example"), suites=b"\x13")), "not valid"),
        (records(message(names(b"api.example")) + message(names(b"evil.test"))), "more in it"),
        (records(message(extension(GREASE, bytes(60_000)))), "longer than"),
        (records(b"\x01\xff\xff\xff"), "longer than"),
    ],
)
def test_what_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(HelloError, match=why):
        name_in(data)


def test_a_hello_that_never_ends_is_refused_in_the_end() -> None:
    reader = HelloReader()
    data = records(b"\x01\x00\x7f\x00" + bytes(LONGEST_HELLO), size=1)

    def feed_all() -> None:
        for at in range(0, len(data), 100):
            reader.feed(data[at : at + 100])

    with pytest.raises(HelloError, match="longer than"):
        feed_all()


@given(st.binary(max_size=400))
@example(records(message(names(b"api.example"))))
def test_any_bytes_are_a_name_or_refused_or_wait(data: bytes) -> None:
    for tried in (data, records(data), records(b"\x01" + len(data).to_bytes(3) + data)):
        reader = HelloReader()
        with suppress(HelloError):
            assert reader.feed(tried) is (reader.name is not None)


@given(st.data())
def test_a_damaged_hello_never_names_a_host_that_is_not_in_it(data: st.DataObject) -> None:
    hello = bytearray(records(message(extension(GREASE, b""), names(b"api.example"))))
    at = data.draw(st.integers(0, len(hello) - 1))
    hello[at] = data.draw(st.integers(0, 255))
    reader = HelloReader()

    with suppress(HelloError):
        reader.feed(bytes(hello))

    assert reader.name is None or reader.name.encode() in bytes(hello).lower()
