"""The client: the servers of one run, declared and injected, for agents whose turns are our own.

A server is reached when it is first needed, and again after it was lost. What goes wrong with one is the
answer of the call that needed it, and once a warning; it never ends the run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import anyio
import msgspec

from nightherd import __version__
from nightherd.model.agents.mcp import (
    InjectedMcpServerDef,
    McpServer,
    McpTransport,
    split_tool_name,
    tool_name,
)
from nightherd.model.journal.event import SystemEvent, describe
from nightherd.model.journal.system import Warned
from nightherd.model.text import shorten
from nightherd.model.units import format_duration
from nightherd.runtimes.mcp.injected import VERSIONS, Message, call_injected
from nightherd.runtimes.mcp.link import (
    HttpLink,
    Link,
    LinkError,
    SseLink,
    Surroundings,
    connect,
    start_stdio,
)
from nightherd.runtimes.tools.tool import ToolOutcome, failed

OPENING = timedelta(seconds=60)
"""How long a server may take until it can be asked."""
CALL = timedelta(minutes=10)
"""How long a call may take when the server's `timeout` does not say."""
LONGEST_REASON = 300


class FoundTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a server offers."""

    name: str
    """The long one, with the server's."""
    description: str
    input_schema: Mapping[str, Any]
    is_read_only: bool = False
    is_idempotent: bool = False
    """Whether a call may be made again when it was cut off; one that only looks may be too."""


class McpClient:
    """The servers of one run. `close` it in whatever way the run ends."""

    def __init__(
        self,
        servers: Sequence[McpServer],
        injected: Sequence[InjectedMcpServerDef],
        where: Surroundings,
    ) -> None:
        self._declared = {server.name: _Connection(server, where) for server in servers}
        self._injected = {server.name: server for server in injected}
        self._warnings: list[SystemEvent] = []
        self._reported: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether `name` is that of a tool of one of the servers, as far as the server goes."""
        parts = split_tool_name(name)
        return parts is not None and (parts[0] in self._injected or parts[0] in self._declared)

    def is_repeatable(self, name: str) -> bool:
        """Whether a call may be made again when it was cut off, as far as that is known without asking."""
        server, tool = split_tool_name(name) or ("", "")
        given = self._injected.get(server)
        found = given.find_tool(tool) if given is not None else None
        return found is not None and (found.is_read_only or found.is_idempotent)

    async def list_tools(self) -> list[FoundTool]:
        """Every tool of every server that can be reached."""
        found = [
            FoundTool(
                name=tool_name(server.name, tool.name),
                description=tool.description,
                input_schema=tool.whole_schema,
                is_read_only=tool.is_read_only,
                is_idempotent=tool.is_idempotent,
            )
            for server in self._injected.values()
            for tool in server.tools
        ]
        declared = [name for name in self._declared if name not in self._injected]
        offered: dict[str, list[FoundTool] | Exception] = {}

        async def look(name: str) -> None:
            try:
                tools = await self._declared[name].list_tools()
                offered[name] = [found_tool(name, tool) for tool in tools]
            except Exception as error:  # noqa: BLE001 (handed over: reported below, in the order of the servers)
                offered[name] = error

        # Beside each other: each may take a while to start, and one that hangs is waited for long.
        async with anyio.create_task_group() as tasks:
            for name in declared:
                tasks.start_soon(look, name)
        for name in declared:
            found += self._taken(name, offered[name])
        return found

    def _taken(self, name: str, offered: list[FoundTool] | Exception) -> list[FoundTool]:
        """What the server offers; nothing, and a warning, when it could not be asked."""
        match offered:
            case LinkError():
                self._warn(name, str(offered))
            case TimeoutError():
                self._warn(name, "it did not list its tools in time")
            case Exception():
                raise offered
            case _:
                return offered
        return []

    async def call(self, name: str, input: Mapping[str, Any]) -> ToolOutcome:
        """What the tool answers; a server that cannot be reached is a failed call."""
        server, tool = split_tool_name(name) or ("", "")
        given, connection = self._injected.get(server), self._declared.get(server)
        if given is not None:
            answer = await call_injected(given, tool, input)
            return failed(answer.text) if answer.is_error else ToolOutcome(result=answer.text)
        if connection is None:
            return failed(f"there is no MCP server {server}")
        try:
            return outcome_of(await connection.call(tool, input))
        except TimeoutError:
            return failed(f"{name} took longer than {format_duration(connection.patience)}")
        except LinkError as error:
            self._warn(server, str(error))
            return failed(f"the MCP server {server} is not available: {error}")

    def take_warnings(self) -> list[SystemEvent]:
        """What has to be said about servers since the last time."""
        taken, self._warnings = self._warnings, []
        return taken

    async def close(self) -> None:
        """Every server is let go. Cannot be cancelled."""
        if not self._declared:
            return
        with anyio.CancelScope(shield=True):
            for connection in self._declared.values():
                await connection.close()

    def _warn(self, name: str, reason: str) -> None:
        if name not in self._reported:
            self._reported.add(name)
            text = f"the MCP server {name} is not available ({reason}); the run continues without its tools"
            self._warnings.append(
                describe(Warned(code="mcp_server_failed", raw={"name": name}), text)
            )


class _Connection:
    """One declared server, open or not."""

    def __init__(self, server: McpServer, where: Surroundings) -> None:
        self._server = server
        self._where = where
        self._link: Link | None = None
        self._numbers = itertools.count(1)
        self._opening, self._asking = anyio.Lock(), anyio.Lock()
        self.patience = server.timeout or CALL

    async def list_tools(self) -> list[Mapping[str, Any]]:
        async with self._asking:
            with anyio.fail_after(OPENING.total_seconds()):
                found: list[Mapping[str, Any]] = []
                params: Message = {}
                while True:
                    result = await self._ask("tools/list", params)
                    found += [one for one in result.get("tools", ()) if isinstance(one, Mapping)]
                    if not result.get("nextCursor"):
                        return found
                    params = {"cursor": result["nextCursor"]}

    async def call(self, tool: str, input: Mapping[str, Any]) -> Message:
        link = await self._open()
        async with nullcontext() if link.is_concurrent else self._asking:
            with anyio.fail_after(self.patience.total_seconds()):
                return await self._ask("tools/call", {"name": tool, "arguments": dict(input)})

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def _ask(self, method: str, params: Message) -> Message:
        """The result of a request; a refusal by the server is an outcome of the tool, not of the link."""
        link = await self._open()
        request = self._request(method, params)
        try:
            answer = await link.ask(request)
        except (LinkError, OSError) as error:
            if self._link is link:  # else another call has closed it at the same time
                await self.close()
            raise error if isinstance(error, LinkError) else LinkError(str(error)) from error
        return result_in(answer)

    async def _open(self) -> Link:
        async with self._opening:
            if self._link is None:
                self._link = await self._opened()
            return self._link

    async def _opened(self) -> Link:
        """A link to a server that has been greeted."""
        link: Link | None = None
        try:
            with anyio.fail_after(OPENING.total_seconds()):
                link = await self._linked()
                await self._introduce(link)
                return link
        except BaseException as error:
            if link is not None:
                with anyio.CancelScope(shield=True):
                    await link.close()
            if isinstance(error, TimeoutError):
                raise LinkError("it did not answer in time") from error
            if isinstance(error, OSError):
                raise LinkError(str(error)) from error
            raise

    async def _linked(self) -> Link:
        match self._server.transport:
            case McpTransport.STDIO:
                return await start_stdio(self._server, self._where)
            case McpTransport.HTTP:
                return HttpLink(self._server)
            case McpTransport.SSE:
                link = SseLink(self._server, connect(self._server.url or ""))
                await link.open()
                return link

    async def _introduce(self, link: Link) -> None:
        hello = {
            "protocolVersion": VERSIONS[0],
            "capabilities": {},
            "clientInfo": {"name": "nightherd", "version": __version__},
        }
        answer = await link.ask(self._request("initialize", hello))
        if "error" in answer:
            raise LinkError(f"initialize failed: {shorten(_reason(answer), LONGEST_REASON)}")
        await link.send_only({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _request(self, method: str, params: Message) -> Message:
        return {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}


def result_in(answer: Message) -> Message:
    """Return the result of a request; a request that the server refused has an error as its result."""
    if isinstance(answer.get("error"), Mapping):
        text = {"type": "text", "text": _reason(answer)}
        return {"content": [text], "isError": True}
    result = answer.get("result")
    return dict(result) if isinstance(result, Mapping) else {}


def _reason(answer: Message) -> str:
    """Return why the server refused a request."""
    error = answer["error"]
    return str(error.get("message", "refused")) if isinstance(error, Mapping) else str(error)


def outcome_of(result: Message) -> ToolOutcome:
    """The result of a call, as text; what is no text is named."""
    parts = result.get("content")
    texts = [text_of(part) for part in parts] if isinstance(parts, list) else []
    text = "\n".join(texts)
    return failed(text or "the tool failed") if result.get("isError") else ToolOutcome(result=text)


def text_of(part: Any) -> str:
    """One part of an answer."""
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": str(kind)}:
            return f"[{kind}]"
        case _:
            return ""


def found_tool(server: str, tool: Mapping[str, Any]) -> FoundTool:
    """A tool as its server describes it."""
    schema, hints = tool.get("inputSchema"), tool.get("annotations")
    said = hints if isinstance(hints, Mapping) else {}
    return FoundTool(
        name=tool_name(server, str(tool.get("name"))),
        description=str(tool.get("description") or ""),
        input_schema=schema if isinstance(schema, Mapping) else {"type": "object"},
        is_read_only=said.get("readOnlyHint") is True,
        is_idempotent=said.get("idempotentHint") is True,
    )
