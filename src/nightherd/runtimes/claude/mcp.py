"""MCP servers in the form that `claude` takes: only those an agent declares, and those injected into its run.

The configuration may hold secrets, so it goes by a file; a server that fails is a warning, not a failed run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import (
    InjectedMcpServerDef,
    McpServer,
    McpTransport,
    split_tool_name,
    tool_name,
)
from nightherd.model.journal.event import (
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Warned
from nightherd.model.permissions.permission import PermissionMode
from nightherd.model.permissions.tool_rule import MCP, covers, named_tools, whole_servers
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.launch import InFile, Option

LONG_RUNNING = timedelta(hours=6)
"""How long a call of a tool that says it takes long may take."""
MARGIN = timedelta(minutes=1)
"""How much later than a call Claude itself is given up."""
WAITING = frozenset({"pending", "connected", "disabled"})
"""What may be said about a server that has not failed."""

GONE = re.compile(r"connection closed|not connected|-32000", re.IGNORECASE)
"""How Claude reports that a server does not answer."""

Entry = Mapping[str, Any]


def mcp_options(agent: Agent, injected: Mapping[str, Entry]) -> Iterator[Option]:
    """The options for the agent's servers and the injected ones, given as entries of a configuration."""
    # Also without any: whatever else is configured on this machine is not the agent's. Only with the switch
    # off does Claude start what a plugin brings.
    if not has_plugin_servers(agent):
        yield Option("strict-mcp-config")
    entries = {**{one.name: entry_of(one) for one in servers_of(agent)}, **injected}
    if entries:
        yield Option("mcp-config", InFile("mcp.json", json.dumps({"mcpServers": entries})))


def has_plugin_servers(agent: Agent) -> bool:
    """Whether a plugin of the agent brings servers, and the agent may have all there are."""
    if agent.required_caps is not None and not covers(agent.required_caps, f"{MCP}\0"):
        return False
    return any(
        plugin.has_mcp_servers and _brings_servers(Path(plugin.path)) for plugin in agent.plugins
    )


def _brings_servers(plugin: Path) -> bool:
    manifest = plugin / ".claude-plugin" / "plugin.json"
    try:
        is_named = "mcpServers" in manifest.read_text(encoding="utf-8", errors="replace")
    except OSError:
        is_named = False
    return is_named or (plugin / ".mcp.json").exists()


def servers_of(agent: Agent) -> tuple[McpServer, ...]:
    """The declared servers that the agent's capabilities leave it."""
    if agent.required_caps is None:
        return agent.mcp_servers
    kept = whole_servers(agent.required_caps, [server.name for server in agent.mcp_servers])
    return tuple(server for server in agent.mcp_servers if server.name in kept)


def tools_of(agent: Agent) -> tuple[str, ...] | None:
    """The tools of Claude's own that there are for the agent; None for all."""
    capable = None if agent.required_caps is None else named_tools(agent.required_caps)
    if capable is None or agent.tools is None:
        return agent.tools if capable is None else capable
    return tuple(name for name in agent.tools if name in capable)


def allowed_tools(agent: Agent, injected: Sequence[InjectedMcpServerDef]) -> tuple[str, ...]:
    """Return what is approved beforehand: the tools of injected servers. In mode `plan` nothing is."""
    if agent.permission_mode == PermissionMode.PLAN:
        return ()
    return (*agent.allowed_tools, *(tool_name(server.name, "*") for server in injected))


def injected_servers(
    agent: Agent, injected: Sequence[InjectedMcpServerDef]
) -> tuple[InjectedMcpServerDef, ...]:
    """Those that the agent's capabilities leave it."""
    if agent.required_caps is None:
        return tuple(injected)
    kept = whole_servers(agent.required_caps, [server.name for server in injected])
    return tuple(server for server in injected if server.name in kept)


def entry_of(server: McpServer) -> dict[str, Any]:
    """A declared server in the words of Claude's configuration."""
    entry: dict[str, Any] = {"type": server.transport.value}
    if server.transport is McpTransport.STDIO:
        entry |= {"command": server.command, "args": list(server.args), "env": dict(server.env)}
    else:
        entry |= {"url": server.url, "headers": dict(server.headers)}
    if server.timeout is not None:
        entry["timeout"] = max(1, round(server.timeout.total_seconds() * 1000))
    if server.always_load is not None:
        entry["alwaysLoad"] = server.always_load
    return entry


def longest_call(request: RuntimeRequest) -> timedelta:
    """How long Claude may be silent because it waits for a server, where that is configured."""
    if any(server.has_long_running_tools for server in request.injected_servers):
        return LONG_RUNNING + MARGIN
    said = [server.timeout + MARGIN for server in request.agent.mcp_servers if server.timeout]
    return max(said, default=timedelta())


def mcp_environment(injected: Sequence[InjectedMcpServerDef]) -> dict[str, str]:
    """What a `claude` has to know about time when calls may take long."""
    if not any(server.has_long_running_tools for server in injected):
        return {}
    milliseconds = str(round(LONG_RUNNING.total_seconds() * 1000))
    return {
        "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT": milliseconds,
        "MCP_TOOL_TIMEOUT": milliseconds,
    }


class ServerNews:
    """What is heard about servers: each failure is reported once."""

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._calls: dict[str | None, str] = {}
        """The servers of calls that are not answered yet."""

    def hear(self, servers: object) -> Iterator[SystemEvent]:
        """The warnings that a list of servers and their states, as Claude gives it, comes to."""
        for server in servers if isinstance(servers, list) else ():
            match server:
                case {"name": str(name), "status": str(status)} if status not in WAITING:
                    yield from self._warn(name, status)
                case _:
                    pass

    def see(self, event: Event) -> Iterator[SystemEvent]:
        """The warning that follows from a call whose server went away in the middle of it."""
        match event:
            case ToolUseEvent(tool_name=name, tool_use_id=call):
                server = split_tool_name(name)
                if server is not None:
                    self._calls[call] = server[0]
            case ToolResultEvent(tool_use_id=call, success=success, error=error):
                called = self._calls.pop(call, None)
                if called is not None and not success and GONE.search(error or ""):
                    yield from self._warn(called, error or "")
            case _:
                pass

    def _warn(self, name: str, reason: str) -> Iterator[SystemEvent]:
        if name not in self._reported:
            self._reported.add(name)
            text = f"the MCP server {name} is not available ({reason}); the run continues without its tools"
            yield describe(Warned(code="mcp_server_failed", raw={"name": name}), text)
