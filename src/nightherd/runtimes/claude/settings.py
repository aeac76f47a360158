"""The settings that `claude` is given in a file of its own: they add to those of the project and outrank them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import InjectedMcpServerDef
from nightherd.model.permissions.permission import PermissionMode
from nightherd.model.permissions.protected import (
    CLAUDE_DIRECTORY,
    CLAUDE_ENTRIES,
    CLAUDE_SERVERS,
    ProtectedPaths,
    present_files,
)

CHANGING_TOOLS = ("Bash", "Write", "Edit", "NotebookEdit")
"""Tools of Claude's that can change something."""
_SPECIAL = re.compile(r"([\\\[\]*?!{}()])")
"""What means something else in a rule unless a backslash stands before it (seen with 2.1.325)."""


def settings_of(agent: Agent, protected: ProtectedPaths | None) -> dict[str, Any]:
    """How the agent's commands are confined, and what it may not change in any permission mode."""
    confined = {} if agent.sandbox is None else {"sandbox": sandbox_of(agent.sandbox, agent)}
    return {**confined, "permissions": {"deny": list(deny_rules(protected))}}


def sandbox_of(sandbox: Mapping[str, Any], agent: Agent) -> dict[str, Any]:
    """The sandbox. Where it cannot be had, Claude does not start; it approves no command in mode `plan`."""
    told = {**sandbox, "failIfUnavailable": True} if sandbox.get("enabled") else dict(sandbox)
    if agent.permission_mode == PermissionMode.PLAN:
        told["autoAllowBashIfSandboxed"] = False
    return told


def denied_in_plan(agent: Agent, injected: Sequence[InjectedMcpServerDef]) -> tuple[str, ...]:
    """What settings files could approve in mode `plan`, where nothing is approved: rules that deny outrank them."""
    if agent.permission_mode != PermissionMode.PLAN or not agent.setting_sources:
        return ()
    servers = [*(one.name for one in agent.mcp_servers), *(one.name for one in injected)]
    return (*CHANGING_TOOLS, *(f"mcp__{name}" for name in servers))


def deny_rules(protected: ProtectedPaths | None) -> Iterator[str]:
    """Rules against changing protected files; Claude applies them to Write, Edit and NotebookEdit, and to file commands."""
    for entry in CLAUDE_ENTRIES:
        yield f"Edit(//**/{CLAUDE_DIRECTORY}/{entry})"
        if not entry.endswith(".json"):
            yield f"Edit(//**/{CLAUDE_DIRECTORY}/{entry}/**)"
    yield f"Edit(//**/{CLAUDE_SERVERS})"
    if protected is None:
        return
    for file in _named_twice(present_files(protected, os.path.isfile)):
        yield f"Edit(/{_escaped(file)})"
    for directory in _named_twice(protected.directories):
        yield f"Edit(/{_escaped(directory)}/**)"
        yield f"Edit(/{_escaped(directory)})"


def _named_twice(paths: tuple[str, ...]) -> dict[str, None]:
    """Each path as it is written, and with its links followed."""
    return dict.fromkeys(
        name for path in paths for name in (os.path.normpath(path), os.path.realpath(path))
    )


def _escaped(path: str) -> str:
    return _SPECIAL.sub(r"\\\1", path)
