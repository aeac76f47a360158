"""A served fleet with workflows, a worker for it, and the stream of a run's events as a client sees it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from nightherd.model.workflows.run import RunId
from nightherd.web.socket_file import address_of
from web.web_world import Answer, World, served, write_fleet
from workflow_fleet import WORKFLOW_FLEET, work


@asynccontextmanager
async def serving_runs(directory: Path) -> AsyncIterator[World]:
    """A fleet with workflows, served; no worker works unless `work_on` is called."""
    async with served(directory, fleet=write_fleet(directory, WORKFLOW_FLEET)) as world:
        yield world


async def work_on(world: World) -> None:
    """Work until no job is left that can be run."""
    await work(world.site.fleet(), world.site.context)


async def start(world: World, workflow: str, **inputs: Any) -> RunId:
    """A run of the workflow, started by a request."""
    answer = await world.post(f"/v1/workflows/{workflow}/runs", {"inputs": inputs})
    assert answer.status == 201, answer.body
    return RunId(answer.data["id"])


async def patch(world: World, path: str, body: Any) -> Answer:
    """One request with the method PATCH."""
    sent = json.dumps(body).encode()
    return await world.ask("PATCH", path, sent, content_type="application/json")


class RunStream:
    """Server-sent events of a run."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._text = b""

    async def head(self) -> bytes:
        """Everything before the events."""
        while b"\r\n\r\n" not in self._text:
            self._text += await self._stream.receive()
        head, _, self._text = self._text.partition(b"\r\n\r\n")
        return head

    async def events(self) -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
        """Each event as its id, type and data, until the server ends the stream."""
        while True:
            while b"\n\n" in self._text:
                block, _, self._text = self._text.partition(b"\n\n")
                fields = dict(line.split(": ", 1) for line in block.decode().split("\n"))
                if "id" in fields:
                    yield fields["id"], fields["event"], json.loads(fields["data"])
            try:
                self._text += await self._stream.receive()
            except anyio.EndOfStream:
                return


@asynccontextmanager
async def following_run(world: World, run_id: str, **headers: str) -> AsyncIterator[RunStream]:
    """Follow a run's events."""
    lines = [f"GET /v1/runs/{run_id}/events HTTP/1.0", "Accept: text/event-stream"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with address_of(world.socket_path) as address:
        stream = await anyio.connect_unix(address)
    async with stream:
        await stream.send("\r\n".join([*lines, "", ""]).encode())
        follower = RunStream(stream)
        head = await follower.head()
        assert b" 200 " in head.split(b"\r\n")[0], head
        yield follower
