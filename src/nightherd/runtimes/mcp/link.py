"""Link: how the messages of the Model Context Protocol reach one server.

Questions wait for their answers where they are asked; nothing runs beside them. Of several that wait, one at a time
listens for all. What a server says in between is heard, and a request of its own is answered that it cannot be
served here.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Protocol

import anyio
import msgspec

from nightherd.model.agents.mcp import McpServer
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.launch import LineReader
from nightherd.runtimes.keeper.process import KeptProcess, kept_process
from nightherd.runtimes.mcp.injected import METHOD_NOT_FOUND, Message

LONGEST_LINE = 64 * 1024 * 1024


class LinkError(Exception):
    """The server cannot be reached, or is not there any more."""


class Link(Protocol):
    """One server that can be talked to. `LinkError` and `OSError` mean that it cannot, any more."""

    @property
    def is_concurrent(self) -> bool:
        """Whether several questions may be open at the same time."""

    async def ask(self, message: Message) -> Message:
        """The answer to a request. May be cancelled: a later answer is dropped."""

    async def tell(self, message: Message) -> None:
        """A message that is not answered."""

    async def close(self) -> None:
        """It is let go, with everything it started. Cannot be cancelled."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the processes of servers run, and who ends them."""

    directory: str
    environment: Mapping[str, str]
    execution: str
    keepers: Keepers
    marks: Mapping[str, str]
    grace: timedelta


class StdioLink:
    """A server that is a process of ours, under a keeper."""

    is_concurrent = True

    def __init__(self, process: KeptProcess, opened: AsyncExitStack) -> None:
        self._process = process
        self._opened = opened
        self._lines = None if process.stdout is None else LineReader(process.stdout, LONGEST_LINE)
        self._telling, self._listening = anyio.Lock(), anyio.Lock()
        self._answers: dict[Any, Message | None] = {}
        """For each open request its answer, once it has arrived."""

    async def ask(self, message: Message) -> Message:
        number = message["id"]
        self._answers[number] = None
        try:
            await self.tell(message)
            while (answer := self._answers[number]) is None:
                async with self._listening:
                    if self._answers[number] is None:
                        await self._hear()
            return answer
        finally:
            del self._answers[number]

    async def _hear(self) -> None:
        """Read the next line, whichever request it answers."""
        line = None if self._lines is None else await self._lines.next()
        if line is None:
            ending = await self._process.wait()
            raise LinkError(f"it ended with exit code {ending.returncode}")
        for heard in heard_in(line):
            number = heard.get("id")
            answer = answer_to(number, heard)
            if answer is not None and isinstance(number, int | str) and number in self._answers:
                self._answers[number] = answer
            reply = reply_to(heard)
            if reply is not None:
                await self.tell(reply)

    async def tell(self, message: Message) -> None:
        async with self._telling:
            if self._process.stdin is not None:
                await self._process.stdin.send(json.dumps(message).encode() + b"\n")

    async def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._opened.aclose()


async def start_stdio(server: McpServer, where: Surroundings) -> StdioLink:
    """The server's process, started; `LinkError` when it cannot be."""
    opened = AsyncExitStack()
    try:
        process = await opened.enter_async_context(
            kept_process(
                [server.command or "", *server.args],
                cwd=where.directory,
                env={**where.environment, **server.env},
                execution=where.execution,
                marks=where.marks,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # What it says there may be anything, also its secrets.
                stderr=subprocess.DEVNULL,
                grace=where.grace,
                keepers=where.keepers,
            )
        )
    except (OSError, ValueError) as error:
        raise LinkError(f"it cannot be started: {error}") from error
    return StdioLink(process, opened)


def heard_in(text: bytes | str) -> Iterator[Mapping[str, Any]]:
    """The messages in a line, or in the data of an event; what is none is passed over."""
    try:
        message = json.loads(text)
    except ValueError:
        return
    for one in message if isinstance(message, list) else [message]:
        if isinstance(one, Mapping):
            yield one


def answer_to(id: Any, message: Mapping[str, Any]) -> Message | None:
    """The message, if it is the answer to request `id`."""
    is_answer = message.get("id") == id and "method" not in message
    return dict(message) if is_answer else None


def reply_to(message: Mapping[str, Any]) -> Message | None:
    """What a server's own request is answered: a ping with life, anything else with regret."""
    if "method" not in message or "id" not in message:
        return None
    if message["method"] == "ping":
        return {"jsonrpc": "2.0", "id": message["id"], "result": {}}
    error = {"code": METHOD_NOT_FOUND, "message": "this client has no such method"}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}
