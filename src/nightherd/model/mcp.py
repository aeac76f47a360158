"""MCP servers as an agent sees them: declared ones, and tools injected by whoever starts a job.

An injected server is its tools alone; how a runtime reaches them is the runtime's business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Handler = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Answers a call; what it raises is told to the model as a failed call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedTool:
    """One tool: what it is called, what it is for, what it takes, and who answers."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    handler: Handler


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedMcpServerDef:
    """Tools given to one run, offered as `mcp__<name>__<tool>`."""

    name: str
    tools: tuple[InjectedTool, ...]
    is_long_running: bool = False
    """Whether a call may take minutes, so that nobody gives up on it early."""
