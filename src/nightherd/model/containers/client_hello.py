"""The first message of a TLS connection, read only for the name of the server that it asks for."""

from __future__ import annotations

from nightherd.model.containers.egress import normal_name

LONGEST_HELLO = 32 * 1024
"""All records together. With keys against quantum computers a ClientHello has some two thousand bytes."""
LONGEST_RECORD = 16 * 1024
RECORD_HEADER = 5
HANDSHAKE, CLIENT_HELLO = 22, 1
SERVER_NAME = 0
ENCRYPTED_HELLO = frozenset({0xFE0D, 0xFFCE, 0xFFCF})
"""Extensions that hide the name of the server (ECH, and ESNI before it)."""
HOST_NAME_TYPE = 0


class HelloError(ValueError):
    """Raised when a connection does not begin with a ClientHello whose server name can be read."""


class HelloReader:
    """Takes the bytes of a connection as they come, until the ClientHello is complete."""

    def __init__(self) -> None:
        self.name: str | None = None
        """The normalised server name, once all of it is here."""
        self._size = 0
        self._pending = bytearray()
        self._message = bytearray()

    def feed(self, data: bytes) -> bool:
        """Take more bytes; whether the ClientHello is complete now. What follows it is not looked at."""
        self._size += len(data)
        self._pending += data
        while not self._is_complete() and self._take_record():
            pass
        is_complete = self._is_complete()
        if not is_complete and self._size > LONGEST_HELLO:
            raise HelloError(f"the ClientHello is longer than {LONGEST_HELLO:,} bytes")
        return is_complete

    def _is_complete(self) -> bool:
        return self.name is not None

    def _take_record(self) -> bool:
        """Move one record, if it is complete, to the message."""
        if self._pending and self._pending[0] != HANDSHAKE:
            raise HelloError("the connection does not begin with TLS")
        if len(self._pending) < RECORD_HEADER:
            return False
        length = int.from_bytes(self._pending[3:RECORD_HEADER])
        if self._pending[1] != 3 or not 1 <= length <= LONGEST_RECORD:
            raise HelloError("the connection does not begin with TLS")
        end = RECORD_HEADER + length
        if len(self._pending) < end:
            return False
        self._message += self._pending[RECORD_HEADER:end]
        del self._pending[:end]
        self._take_message()
        return True

    def _take_message(self) -> None:
        if self._message[0] != CLIENT_HELLO:
            raise HelloError("the connection does not begin with a ClientHello")
        if len(self._message) < 4:
            return
        end = 4 + int.from_bytes(self._message[1:4])
        if end > LONGEST_HELLO:
            raise HelloError(f"the ClientHello is longer than {LONGEST_HELLO:,} bytes")
        if len(self._message) > end:
            raise HelloError("the record of the ClientHello has more in it")
        if len(self._message) == end:
            self.name = server_name(bytes(self._message[4:]))


class _Reader:
    """Reads fields from bytes; `HelloError` where there are not enough."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        field = self._data[self._at : self._at + size]
        if len(field) != size:
            raise HelloError("the ClientHello is not valid")
        self._at += size
        return field

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> bytes:
        """A field whose length is before it, in `size` bytes."""
        return self.take(self.number(size))


def server_name(hello: bytes) -> str:
    """The normalised name in the body of a ClientHello; `HelloError` when there is not exactly one that can be read."""
    reader = _Reader(hello)
    reader.take(2 + 32)  # version, random
    session, suites, methods = reader.vector(1), reader.vector(2), reader.vector(1)
    if len(session) > 32 or not suites or len(suites) % 2 or not methods:
        raise HelloError("the ClientHello is not valid")
    extensions = _Reader(b"" if reader.is_at_end else reader.vector(2))
    if not reader.is_at_end:
        raise HelloError("the ClientHello is not valid")
    names: list[bytes] = []
    while not extensions.is_at_end:
        kind, body = extensions.number(2), extensions.vector(2)
        if kind in ENCRYPTED_HELLO:
            raise HelloError("the ClientHello hides the name of the server (ECH)")
        if kind == SERVER_NAME:
            names.append(body)
    if len(names) != 1:
        raise HelloError("the ClientHello does not name the server (SNI)")
    return _host_name(names[0])


def _host_name(body: bytes) -> str:
    outer = _Reader(body)
    entries = _Reader(outer.vector(2))
    kind, name = entries.number(1), entries.vector(2)
    if kind != HOST_NAME_TYPE or not entries.is_at_end or not outer.is_at_end:
        raise HelloError("the ClientHello must name one server")
    normal = normal_name(name.decode("ascii")) if name.isascii() else None
    if normal is None:
        raise HelloError("the name of the server in the ClientHello is not valid")
    return normal
