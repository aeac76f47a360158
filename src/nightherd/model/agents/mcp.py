"""MCP servers: those an agent declares, and tools that the caller gives to one run.

A tool of a server is called `mcp__<server>__<tool>` everywhere. What a tool does is said apart from how it
is reached: a runtime offers an injected server in whatever way its agent can use.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.errors import InvalidValueError

PREFIX = "mcp__"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class McpTransport(StrEnum):
    """How a server is talked to."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """One declared server: a process to start, or an address to connect to."""

    name: str
    transport: McpTransport
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    url: str | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    timeout: timedelta | None = None
    """How long one call may take; None for as long as the runtime allows."""
    always_load: bool | None = None
    """Whether its tools are offered from the first turn on; None for the runtime's own choice."""

    def __repr__(self) -> str:
        # Arguments, environment, address and headers may hold secrets.
        return (
            f"McpServer(name={self.name!r}, transport={self.transport!r}, command={self.command!r})"
        )


def run_elsewhere(server: McpServer, root: str) -> McpServer:
    """Return the server for a job that does not work in `root`: a path that leads out of `root` still does.

    Paths inside of it are those of the directory the job works in.
    """
    if server.command is None:
        return server
    command, *args = (_anchored(word, root) for word in (server.command, *server.args))
    return replace(server, command=command, args=tuple(args))


def _anchored(word: str, root: str) -> str:
    is_outside = word == ".." or word.startswith("../")
    return posixpath.normpath(posixpath.join(root, word)) if is_outside else word


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call of an injected tool."""

    text: str
    is_error: bool = False


Handler = Callable[[Mapping[str, Any]], Awaitable[ToolAnswer | str]]
"""Makes a call. A text is as good as an answer; what it raises becomes an answer that says so."""


class InjectedMcpToolDef(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of an injected server."""

    name: str
    description: str
    handler: Handler
    input_schema: Mapping[str, Any] = msgspec.field(default_factory=lambda: {"type": "object"})
    """JSON schema of its input: an object."""
    is_long_running: bool = False
    """Whether a call may take longer than a minute."""
    is_read_only: bool = False
    """Whether a call only looks: our own loops make it beside others, and again when it was cut off."""
    is_idempotent: bool = False
    """Whether a call that was cut off may be made again."""

    def __post_init__(self) -> None:
        check_mcp_name(self.name)

    @property
    def whole_schema(self) -> dict[str, Any]:
        """The schema with what every schema of an input has to say."""
        return {"type": "object", "properties": {}, **self.input_schema}


class InjectedMcpServerDef(msgspec.Struct, frozen=True, kw_only=True):
    """Tools given to one run, apart from how they reach the agent."""

    name: str
    tools: tuple[InjectedMcpToolDef, ...]

    def __post_init__(self) -> None:
        check_server_name(self.name)

    @property
    def has_long_running_tools(self) -> bool:
        """Whether a call of one of its tools may take longer than a minute."""
        return any(tool.is_long_running for tool in self.tools)

    def find_tool(self, name: str) -> InjectedMcpToolDef | None:
        """The tool called `name`."""
        return next((tool for tool in self.tools if tool.name == name), None)


def tool_name(server: str, tool: str) -> str:
    """What agents call a tool of a server."""
    return f"{PREFIX}{server}__{tool}"


def split_tool_name(name: str) -> tuple[str, str] | None:
    """The server and the tool that `name` means; None when it is no tool of a server."""
    if not name.startswith(PREFIX):
        return None
    server, separator, tool = name.removeprefix(PREFIX).partition("__")
    return (server, tool) if server and separator and tool else None


def check_mcp_name(name: str) -> str:
    """`name`, or `InvalidValueError` when agents could not call it."""
    if _NAME.fullmatch(name) is None:
        raise InvalidValueError(f"{name!r} is not a name: use letters, digits, _ and -")
    return name


def check_server_name(name: str) -> str:
    """`name`, or `InvalidValueError`. With two underscores in it, where the tool's name begins is unclear."""
    if "__" in check_mcp_name(name) or name.startswith("_") or name.endswith("_"):
        raise InvalidValueError(
            f"{name!r} is not a name for a server: no __ in it, no _ at its ends"
        )
    return name
