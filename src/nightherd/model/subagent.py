"""Subagent and Plugin: what a Claude agent brings along besides its tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """A helper that the agent may call on by itself."""

    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    """The only tools there are for it; None for all of the agent's."""
    model: str | None = None

    def in_claudes_words(self) -> dict[str, Any]:
        """The definition as Claude takes it."""
        said: dict[str, Any] = {"description": self.description, "prompt": self.prompt}
        if self.tools is not None:
            said["tools"] = list(self.tools)
        if self.model is not None:
            said["model"] = self.model
        return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A directory with skills, commands, hooks and servers in Claude's own form."""

    path: str
    has_mcp_servers: bool = True
    """Whether the servers it brings are started too."""
