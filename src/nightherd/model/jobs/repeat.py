"""Repeat: which calls are made, or made again, when the worker that was to make them is gone.

A call that was cut off may have happened or not. One that is marked on record as idempotent comes to the
same however often it is made, and is made again; every other is answered as interrupted. Those behind it
in the same answer had not begun: their turn comes only once what is before them has its result on record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nightherd.model.agents.agent import Agent
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent
from nightherd.model.permissions.permission import ALLOWED, PermissionMode, Permissions, decide
from nightherd.model.permissions.tool_rule import parse_rule

IDEMPOTENT = "idempotent"
"""In `extra` of a call that may be made again."""
_BEGINS, _ENDS = "interrupted: ", " while this ran, its outcome is unknown"


def interrupted_call(cause: str) -> str:
    """The result of a call that was cut off and may not be made again."""
    return f"{_BEGINS}{cause}{_ENDS}"


def is_interrupted_call(error: str | None) -> bool:
    """Whether that is the result of a call that was cut off, whatever the cause."""
    return error is not None and error.startswith(_BEGINS) and error.endswith(_ENDS)


INTERRUPTED_CALL = interrupted_call("the worker was lost")
"""The result of a call whose worker was lost."""


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
    """Takes a job's events in order; `calls` are those of a whole answer that are still to be made, or made again."""

    def __init__(self) -> None:
        self._open: dict[str, bool] = {}
        """Calls of the last whole answer that have no result, in their order; whether each is marked."""
        self._unended: dict[str, bool] = {}

    @property
    def calls(self) -> set[str]:
        """All that are open, but for the first unless it is marked: it alone may have begun already."""
        first = next(iter(self._open), None)
        return {call for call, marked in self._open.items() if marked or call != first}

    def add(self, event: Event) -> None:
        """One more event."""
        match event:
            case ToolResultEvent(tool_use_id=str(call)):
                self._open.pop(call, None)
            case AssistantEvent() | ToolUseEvent():
                self._add_answer(event)
            case _:
                pass

    def _add_answer(self, event: AssistantEvent | ToolUseEvent) -> None:
        if not event.index:
            self._unended = {}
        if isinstance(event, ToolUseEvent) and event.tool_use_id:
            self._unended[event.tool_use_id] = is_marked(event)
        if event.end:
            self._open, self._unended = self._unended, {}


def is_marked(call: ToolUseEvent) -> bool:
    """Whether the record says of the call that it may be made again."""
    return (call.extra or {}).get(IDEMPOTENT) is True
