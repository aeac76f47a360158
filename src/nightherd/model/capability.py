"""Capability: what an agent is held to, whatever else allows more.

`nightherd.tool.<Name>`, `nightherd.mcp.<server>.<tool>` and `nightherd.spawn.<agent>`; `*` stands for any
number of characters, dots included. An agent that is held to none may do nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from nightherd.model.mcp import split_tool_name

TOOL = "nightherd.tool."
MCP = "nightherd.mcp."
SPAWN = "nightherd.spawn."
SPAWN_TOOL = "Spawn"
"""The tool that jobs are made with: being allowed one agent is being allowed the tool."""


def capability_of_tool(tool: str) -> str:
    """The capability that calling `tool` takes."""
    server = split_tool_name(tool)
    return f"{TOOL}{tool}" if server is None else f"{MCP}{server[0]}.{server[1]}"


def covers_tool(capabilities: Iterable[str], tool: str) -> bool:
    """Whether an agent held to `capabilities` may call `tool`, as far as they go."""
    held_to = tuple(capabilities)
    if tool == SPAWN_TOOL and any(one.startswith(SPAWN) for one in held_to):
        return True
    return covers(held_to, capability_of_tool(tool))


def covers_spawn(capabilities: Iterable[str] | None, agent: str) -> bool:
    """Whether an agent held to `capabilities` (None: to nothing) may have jobs done by `agent`."""
    return capabilities is None or covers(capabilities, f"{SPAWN}{agent}")


def covers(capabilities: Iterable[str], wanted: str) -> bool:
    """Whether one of `capabilities` is `wanted`, or a pattern that fits it."""
    return any(
        re.fullmatch(".*".join(map(re.escape, one.split("*"))), wanted) is not None
        for one in capabilities
    )


def whole_servers(capabilities: Iterable[str], servers: Iterable[str]) -> tuple[str, ...]:
    """Those of `servers` of which every tool is covered."""
    # No tool is called so: only a pattern for all of them fits.
    return tuple(name for name in servers if covers(capabilities, f"{MCP}{name}.\0"))


def named_tools(capabilities: Iterable[str]) -> tuple[str, ...] | None:
    """The tools, of no server, that are covered; None when all are."""
    names = [one.removeprefix(TOOL) for one in capabilities if one.startswith(TOOL)]
    return None if "*" in names else tuple(names)
