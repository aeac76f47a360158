"""Capabilities that a runtime could not hold an agent to: found before anything runs.

Our own loops look at every call. Claude is only told which tools and which servers there are, so it can be held
to tools by name and to servers as a whole.
"""

from __future__ import annotations

from nightherd.config.findings import Findings
from nightherd.config.layers import Draft
from nightherd.config.node import Node, SequenceNode, problem_at
from nightherd.model.agent import Agent, RuntimeName
from nightherd.model.capability import MCP, TOOL

CLAUDE = frozenset({RuntimeName.SDK, RuntimeName.CLI})


def check_capabilities(agent: Agent, draft: Draft, findings: Findings) -> None:
    """Every capability of an agent that Claude runs is one that Claude can be held to."""
    if agent.runtime not in CLAUDE:
        return
    given = draft.node.get("required_caps")
    items: tuple[Node, ...] = given.items if isinstance(given, SequenceNode) else ()
    for item, capability in zip(items, agent.required_caps or (), strict=False):
        message = mistake_in(capability)
        if message is not None:
            findings.add(problem_at(item, message, path=f"{draft.path}.required_caps"))


def mistake_in(capability: str) -> str | None:
    """Why Claude cannot be held to the capability."""
    if capability.startswith(TOOL):
        name = capability.removeprefix(TOOL)
        if "*" in name and name != "*":
            return f"Claude is held to tools by name: write {TOOL}NAME, or {TOOL}* for all"
    if capability.startswith(MCP):
        server, _, tool = capability.removeprefix(MCP).partition(".")
        if server != "*" and ("*" in server or tool != "*"):
            return f"Claude is held to servers as a whole: write {MCP}SERVER.*"
    return None
