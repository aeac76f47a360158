"""Toolset: what one run may call. Every call is decided on before it is made, and answered whatever happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

from nightherd.model.children import TOOL as SPAWN
from nightherd.model.inbox.review import Proceed, Refuse, Replied, Wait
from nightherd.model.jobs.repeat import IDEMPOTENT, Declared
from nightherd.model.journal.event import MessageEvent, ToolUseEvent
from nightherd.model.permissions.permission import Permissions, is_offered
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.keeper.place import HOST, FilesThere
from nightherd.runtimes.mcp.client import FoundTool
from nightherd.runtimes.protection import permissions_for
from nightherd.runtimes.real_path import real_path_at
from nightherd.runtimes.review import changed_by_person, review_call
from nightherd.runtimes.tools.output import bounded
from nightherd.runtimes.tools.tool import Tool, ToolContext, ToolOutcome, failed
from nightherd.runtimes.tools.toolbox import STANDARD

Work = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolOutcome]]


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as the model is offered it, and what does its work."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    work: Work
    starts_processes: bool = False
    is_read_only: bool = False
    is_idempotent: bool = False

    @property
    def definition(self) -> ToolDefinition:
        """As pydantic-ai takes it."""
        return ToolDefinition(
            name=self.name,
            description=self.description,
            parameters_json_schema=dict(self.input_schema),
        )


def offer(tools: Iterable[Tool]) -> list[OfferedTool]:
    """The tools whose descriptions models have received."""
    return [
        OfferedTool(
            name=tool.name,
            description=STANDARD[tool.name].description,
            input_schema=STANDARD[tool.name].input_schema,
            work=tool.run,
            starts_processes=tool.starts_processes,
            is_read_only=tool.is_read_only,
            # A call has one child, however often it is made.
            is_idempotent=tool.name == SPAWN,
        )
        for tool in tools
        if tool.name in STANDARD
    ]


def offer_found(
    tools: Iterable[FoundTool],
    call: Callable[[str, Mapping[str, Any]], Awaitable[ToolOutcome]],
) -> list[OfferedTool]:
    """The tools of MCP servers, which `call` calls by their names."""

    def work_of(name: str) -> Work:
        async def work(input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
            return await bounded(await call(name, input), context)

        return work

    return [
        OfferedTool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.input_schema,
            work=work_of(tool.name),
            is_read_only=tool.is_read_only,
            is_idempotent=tool.is_idempotent,
        )
        for tool in tools
    ]


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call; `denied` says why it was not made."""

    outcome: ToolOutcome
    denied: str | None = None
    is_waiting: bool = False
    """Whether a person has to allow the call first: nothing was done, and there is no result."""


WAITING = Answered(outcome=failed("waits for a person"), is_waiting=True)


class Toolset:
    """The tools that an agent may call in one run, in the order in which they are offered."""

    def __init__(
        self, request: RuntimeRequest, tools: Sequence[OfferedTool], place: FilesThere = HOST
    ) -> None:
        self._request = request
        self._place = place
        self._permissions: Permissions = permissions_for(request, place)
        self._declared = Declared(request.agent, real_path_at(place))
        self._tools = {
            tool.name: tool for tool in tools if is_offered(self._permissions, tool.name)
        }

    @property
    def names(self) -> list[str]:
        """What they are called."""
        return list(self._tools)

    @property
    def definitions(self) -> list[ToolDefinition]:
        """Return their descriptions for the model."""
        return [tool.definition for tool in self._tools.values()]

    @property
    def described(self) -> list[dict[str, Any]]:
        """The same as plain values, for the record."""
        return [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": dict(tool.input_schema),
            }
            for tool in self._tools.values()
        ]

    def starts_processes(self, call: ToolCallPart) -> bool:
        """Whether the call may leave something running."""
        tool = self._tools.get(call.tool_name)
        return tool is not None and tool.starts_processes

    def is_read_only(self, call: ToolCallPart) -> bool:
        """Whether the call only looks, and may be made beside others."""
        tool = self._tools.get(call.tool_name)
        return tool is not None and tool.is_read_only

    def is_repeatable(self, name: str, input: Any) -> bool:
        """Whether a call may be made again when its worker was lost meanwhile."""
        tool = self._tools.get(name)
        if tool is None:
            return False
        return tool.is_read_only or tool.is_idempotent or self._declared.covers(name, input)

    async def answer(self, call: ToolCallPart, context: ToolContext) -> Answered:
        """Make the call if it can and may be made; in any case there is an answer."""
        tool = self._tools.get(call.tool_name)
        if tool is None:
            there = ", ".join(self._tools) or "no tools at all"
            return Answered(outcome=failed(f"there is no tool {call.tool_name}; there are {there}"))
        try:
            input = call.args_as_dict(raise_if_invalid=True)
        except (ValueError, AssertionError):
            return Answered(outcome=failed(f"the input of {tool.name} is not a JSON object"))
        verdict = await review_call(
            self._request, self._permissions, tool.name, input, call.tool_call_id, self._place
        )
        match verdict:
            case Wait():
                return WAITING
            case Refuse(reason=reason):
                return Answered(outcome=failed(reason), denied=reason)
            case Replied(text=text):
                return Answered(outcome=ToolOutcome(result=text))
            case Proceed(input=changed) if changed is not None:
                outcome = await tool.work(changed, context)
                return Answered(outcome=changed_by_person(outcome, changed))
            case _:
                return Answered(outcome=await tool.work(input, context))


def context_of(
    request: RuntimeRequest, call: ToolCallPart, marks: Mapping[str, str], **more: Any
) -> ToolContext:
    """Where and for whom the call runs."""
    return ToolContext(
        working_directory=Path(request.agent.working_directory),
        tool_use_id=call.tool_call_id,
        marks=marks,
        environment=request.environment,
        # Where its files are was part of the question whether the call may be made.
        more_directories=(Path("/"),),
        keep_output=request.keep_output,
        secrets=request.known_secrets(),
        spawn=request.spawn,
        **more,
    )


def marked(line: MessageEvent, toolset: Toolset) -> MessageEvent:
    """A call says on record whether it may be made again: by then nobody else may know."""
    if not isinstance(line, ToolUseEvent):
        return line
    if not toolset.is_repeatable(line.tool_name, line.input):
        return line
    return msgspec.structs.replace(line, extra={**(line.extra or {}), IDEMPOTENT: True})
