"""The stream of a fleet as a client sees it: each event with its id, kind and data."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc

from nightherd.web.socket_file import address_of
from web.web_world import PATIENCE_S, World

Data = dict[str, Any]


@dataclass(frozen=True)
class Heard:
    """One event."""

    id: str | None
    kind: str
    data: Data


def heard_in(block: bytes) -> Heard | None:
    """The event in a block; None for a comment or a block without data."""
    fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if line[0] != ":")
    if "data" not in fields:
        return None
    return Heard(fields.get("id"), fields["event"], json.loads(fields["data"]))


class Listener:
    """A client of the stream, and what it has heard."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self.text = b""
        self.heard: list[Heard] = []

    async def head(self) -> bytes:
        """Everything before the events."""
        while b"\r\n\r\n" not in self.text:
            self.text += await self.stream.receive()
        head, _, self.text = self.text.partition(b"\r\n\r\n")
        return head

    async def next(self) -> Heard:
        """The next event."""
        while True:
            while b"\n\n" in self.text:
                block, _, self.text = self.text.partition(b"\n\n")
                found = heard_in(block)
                if found is not None:
                    self.heard.append(found)
                    return found
            self.text += await self.stream.receive()

    async def until(self, is_it: Callable[[Heard], bool]) -> Heard:
        """The first event from here on that is the one; all before it are in `heard`."""
        with anyio.fail_after(PATIENCE_S):
            while not is_it(found := await self.next()):
                pass
        return found

    async def until_ended(self, job_id: str) -> None:
        """Until the row of the job says that it has ended."""
        ended = ("completed", "failed", "cancelled")
        await self.until(
            lambda one: (
                one.kind == "job" and one.data["id"] == job_id and one.data["status"] in ended
            )
        )

    def of(self, kind: str) -> list[Data]:
        """The data of all events of a kind."""
        return [one.data for one in self.heard if one.kind == kind]

    @property
    def last_id(self) -> str:
        """The cursor to come back with."""
        return [one.id for one in self.heard if one.id is not None][-1]


@asynccontextmanager
async def listening(
    world: World, topics: str, after: str = "", **headers: str
) -> AsyncIterator[Listener]:
    """A client of the stream, whose first event has come."""
    path = f"/v1/stream?topics={topics}&after={after}"
    lines = [f"GET {path} HTTP/1.0", "Accept: text/event-stream"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with address_of(world.socket_path) as address:
        stream = await anyio.connect_unix(address)
    async with stream:
        await stream.send("\r\n".join([*lines, "", ""]).encode())
        listener = Listener(stream)
        head = await listener.head()
        assert b" 200 " in head.split(b"\r\n")[0], head
        with anyio.fail_after(PATIENCE_S):
            assert (await listener.next()).kind == "ready"
        yield listener
