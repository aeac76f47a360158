"""Requests that two readers may understand differently, or whose head has no end, and tokens that can be guessed."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from msgspec.structs import replace

from nightherd.errors import ConfigError
from nightherd.host.system import random_text
from nightherd.model.access.web import Web
from nightherd.web.ports import ports_of
from nightherd.web.socket_file import connect
from web.web_world import served


def answers(path: Path, said: bytes) -> bytes:
    """All that comes back until the connection is closed."""
    with connect(path, 60) as client:
        client.sendall(said)
        heard = b""
        while more := client.recv(65_536):
            heard += more
        return heard


SMUGGLED = (
    b"POST /v1/hooks/issues HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
)
LONG_HEADER = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 60_000 + b"\r\n\r\n"
LONG_TARGET = b"GET /healthz?" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "status"), [(SMUGGLED, 400), (LONG_HEADER, 431), (LONG_TARGET, 431)]
)
def test_unclear_request_is_refused_and_the_connection_closed(
    tmp_path: Path, request_bytes: bytes, status: int
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            heard = await to_thread.run_sync(answers, world.socket_path, request_bytes)

            # One answer: what follows on the same connection is not read as a request.
            assert heard.count(b"HTTP/1.1 ") == 1
            assert int(heard.split(b" ", 2)[1]) in (status, 400)

    anyio.run(main)


def test_large_head_below_the_limit_is_taken(tmp_path: Path) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: %b\r\n\r\n"

    async def main() -> None:
        async with served(tmp_path) as world:
            heard = await to_thread.run_sync(answers, world.socket_path, request % (b"a" * 30_000))

            assert heard.startswith(b"HTTP/1.1 200")

    anyio.run(main)


def test_short_token_is_refused_where_other_machines_can_reach_the_port(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            site, state = world.site, tmp_path / ".nightherd"
            fleet = replace(site.fleet(), environment={"NIGHTHERD_WEB_TOKEN": "short"})
            is_open = replace(fleet, web=Web(enabled=True, host="0.0.0.0"))
            with pytest.raises(ConfigError, match="at least 16"):
                ports_of(is_open, site, state, random_text)

            at_home = replace(fleet, web=Web(enabled=True, host="127.0.0.1"))
            (port,) = ports_of(at_home, site, state, random_text)
            assert port.door.identify.token == "short"

    anyio.run(main)
