"""Requests to a tracker's API: one at a time in a thread, no redirects, answers of bounded size."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import anyio
import msgspec
from anyio import to_thread

from nightherd.errors import WorkSourceError

ANSWER_LIMIT = 32 * 1024 * 1024
"""Bytes of an answer that are read: a page has a hundred issues with up to 64 KiB each."""
TIMEOUT_S = 20.0


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


Exchange = Callable[[str, str, Mapping[str, str], bytes | None], Awaitable[HttpAnswer]]
"""Sends a request (method, path, headers, body) and returns the answer, whatever its status."""


def make_exchange(base_url: str, timeout_s: float = TIMEOUT_S) -> Exchange:
    """Return what sends requests to the API at that address."""
    address = urlsplit(base_url.rstrip("/"))
    host, is_tls, prefix = address.hostname or "", address.scheme == "https", address.path

    async def exchange(
        method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpAnswer:
        opened: list[socket.socket] = []

        def send() -> HttpAnswer:
            connection = _connection(host, address.port, is_tls=is_tls, timeout_s=timeout_s)
            try:
                connection.connect()
                opened.append(connection.sock)
                connection.request(method, prefix + path, body=body, headers=dict(headers))
                return _read(connection.getresponse())
            finally:
                connection.close()

        try:
            with anyio.fail_after(timeout_s):
                try:
                    return await to_thread.run_sync(send, abandon_on_cancel=True)
                except anyio.get_cancelled_exc_class():
                    # Its thread is left behind: without a connection it ends, also where answers come drop by drop.
                    for one in opened:
                        with suppress(OSError):
                            one.shutdown(socket.SHUT_RDWR)
                    raise
        except TimeoutError:
            raise WorkSourceError(f"{host} did not answer within {timeout_s:g}s") from None
        except (OSError, http.client.HTTPException) as error:
            reason = f"{type(error).__name__}: {error}"
            raise WorkSourceError(f"{host} cannot be asked: {reason}") from error

    return exchange


def _connection(
    host: str, port: int | None, *, is_tls: bool, timeout_s: float
) -> http.client.HTTPConnection:
    if not is_tls:
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)


def _read(answer: http.client.HTTPResponse) -> HttpAnswer:
    body = answer.read(ANSWER_LIMIT + 1)
    if len(body) > ANSWER_LIMIT:
        raise http.client.HTTPException("the answer is too large")
    headers = {name.lower(): value for name, value in answer.getheaders()}
    return HttpAnswer(status=answer.status, headers=headers, body=body)
