"""Repeat: which calls are made again when their worker was lost while they ran.

A call that was cut off may have happened or not. One that is marked on record as idempotent comes to the
same however often it is made, and is made again; every other is answered as interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nightherd.model.agent import Agent
from nightherd.model.event import AssistantEvent, Event, ToolUseEvent
from nightherd.model.permission import ALLOWED, PermissionMode, Permissions, decide
from nightherd.model.tool_rule import parse_rule

IDEMPOTENT = "idempotent"
"""In `extra` of a call that may be made again."""
INTERRUPTED_CALL = "interrupted: the worker was lost while this ran, its outcome is unknown"
"""What is told of every other."""


class Declared:
    """The calls that an agent's `idempotent_tools` name; rules are read as those of `allowed_tools` are."""

    def __init__(self, agent: Agent, real_path: Callable[[str], str]) -> None:
        self._rules = Permissions(
            mode=PermissionMode.DEFAULT,
            directories=(agent.working_directory, *agent.add_dirs),
            allowed=tuple(parse_rule(text) for text in agent.idempotent_tools),
            real_path=real_path,
        )

    def covers(self, tool: str, input: Any) -> bool:
        """Whether all of the call is one that was named."""
        if not self._rules.allowed or not isinstance(input, Mapping):
            return False
        return decide(self._rules, tool, input) == ALLOWED


class Repeatable:
    """Takes a job's events in order; `calls` are those whose answer is whole and that may be made again."""

    def __init__(self) -> None:
        self.calls: set[str] = set()
        self._unended: set[str] = set()

    def add(self, event: Event) -> None:
        """One more event."""
        if not isinstance(event, AssistantEvent | ToolUseEvent):
            return
        if not event.index:
            self._unended.clear()
        if isinstance(event, ToolUseEvent) and event.tool_use_id and is_marked(event):
            self._unended.add(event.tool_use_id)
        if event.end:
            self.calls |= self._unended
            self._unended.clear()


def is_marked(call: ToolUseEvent) -> bool:
    """Whether the record says of the call that it may be made again."""
    return (call.extra or {}).get(IDEMPOTENT) is True
