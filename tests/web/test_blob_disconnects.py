"""A client that leaves in the middle of a blob: the file is closed then, not whenever memory is tidied up."""

from __future__ import annotations

import gc
from pathlib import Path

import anyio

from nightherd.journal.blobs import Blobs
from nightherd.web.socket_file import address_of
from web.web_world import served, until

LARGE = b"x" * 64 * 1024 * 1024
"""More than sockets hold."""


def open_files(directory: Path) -> list[str]:
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(descriptor.readlink()))
        except FileNotFoundError:
            continue  # of the listing itself
    return [path for path in found if path.startswith(str(directory))]


def test_a_blob_is_closed_when_its_reader_leaves(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            blobs = tmp_path / ".nightherd" / "blobs"
            sha256 = Blobs(blobs).put([LARGE]).sha256
            with address_of(world.socket_path) as address:
                stream = await anyio.connect_unix(address)
            await stream.send(
                f"GET /v1/blobs/{sha256} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            )
            assert b" 200 " in await stream.receive()
            assert open_files(blobs) != []

            await stream.aclose()

            async def is_closed() -> bool:
                return open_files(blobs) == []

            await until(is_closed)

    gc.collect()
    gc.disable()
    try:
        anyio.run(main)
    finally:
        gc.enable()
