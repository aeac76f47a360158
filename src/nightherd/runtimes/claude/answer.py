"""What a run used, from what Claude reports. Its totals continue counting over a session; ours begin with the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolUseEvent,
    describe,
    payload_of,
)
from nightherd.model.journal.system import Denied
from nightherd.model.units import PER_DOLLAR, MicroUsd
from nightherd.model.usage import NOTHING_USED, Usage


def usage_of(reported: Any) -> Usage:
    """Tokens as the API counts them; what is no number counts nothing."""
    if not isinstance(reported, Mapping):
        return NOTHING_USED
    return Usage(
        input_tokens=_count(reported.get("input_tokens")),
        output_tokens=_count(reported.get("output_tokens")),
        cache_creation_input_tokens=_count(reported.get("cache_creation_input_tokens")),
        cache_read_input_tokens=_count(reported.get("cache_read_input_tokens")),
    )


def at_least_nothing(usage: Usage) -> Usage:
    """`usage`, where it is more than nothing: two counts of one thing may differ a little."""
    counts = msgspec.structs.asdict(usage)
    return Usage(**{name: max(count, 0) for name, count in counts.items()})


class Spending:
    """Adds up the results of one run. `is_cost_known` turns false when only a session's total was reported."""

    def __init__(self, *, is_resumed: bool) -> None:
        self.models: dict[str, Usage] = {}
        self.is_cost_known = True
        self._is_resumed = is_resumed
        self._seen_total = 0
        self._unnamed = NOTHING_USED

    @property
    def usage(self) -> Usage:
        """All of it."""
        return sum(self.models.values(), self._unnamed)

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one `result` message: what was used since the one before."""
        since = result.get("model_usage_since_last_result")
        if isinstance(since, Mapping):
            for name, reported in since.items():
                self.models[str(name)] = self.models.get(str(name), NOTHING_USED) + _of_model(
                    reported
                )
            return
        # An older Claude: tokens are those of the run, but the cost is that of the whole session.
        total = _microusd(result.get("total_cost_usd"))
        cost = 0 if self._is_resumed else max(total - self._seen_total, 0)
        self.is_cost_known = self.is_cost_known and not (self._is_resumed and total)
        self._seen_total = total
        self._unnamed += usage_of(result.get("usage")) + Usage(cost_microusd=MicroUsd(cost))


def _of_model(reported: Any) -> Usage:
    if not isinstance(reported, Mapping):
        return NOTHING_USED
    return Usage(
        input_tokens=_count(reported.get("inputTokens")),
        output_tokens=_count(reported.get("outputTokens")),
        cache_creation_input_tokens=_count(reported.get("cacheCreationInputTokens")),
        cache_read_input_tokens=_count(reported.get("cacheReadInputTokens")),
        cost_microusd=MicroUsd(_microusd(reported.get("costUSD"))),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _microusd(value: Any) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < PER_DOLLAR:
        return round(value * PER_DOLLAR)
    return 0


CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
ESTIMATED = {"cost_source": "estimate"}
"""In `extra` of an answer whose cost is taken from a table of prices, until Claude says what the run cost."""

Price = Callable[[str, Usage], MicroUsd | None]
"""What so much of a model costs; None when it is unknown."""


def no_price(model: str, usage: Usage) -> MicroUsd | None:
    """Return None: the price is unknown."""
    return None


class Answers:
    """The groups of one run. At most one is open: what interrupts it ends it."""

    def __init__(self, first_turn: int, price: Price = no_price) -> None:
        self._price = price
        self._last_turn = first_turn - 1
        self._message_id: str | None = None
        """Of the last answer of the agent itself; blocks that carry it belong to its turn."""
        self._open: _Group | None = None
        self._closed: _Group | None = None
        """The one before: what it used may still become known."""
        self.used = NOTHING_USED
        """What the answers given out so far have said they used, at what that is taken to cost."""

    @property
    def turn(self) -> int:
        """The turn that is being played; before the first answer, the one that is about to be."""
        return max(self._last_turn, 1)

    def add(self, message: Mapping[str, Any]) -> Iterator[Event]:
        """The lines that an `assistant` message of Claude's comes to, as far as they are known."""
        body = body_of(message)
        if body is None:
            return
        parent = _text(message.get("parent_tool_use_id"))
        name = _text(body.get("id")) or ""
        if self._open is not None and (self._open.name, self._open.parent) != (name, parent):
            yield from self.close()
        if self._open is None:
            self._open = _Group(name, parent, self._turn_of(name, parent))
        self._open.usage.update(_present(body.get("usage")))
        self._open.model = _text(body.get("model")) or self._open.model
        self._open.uuid = _text(message.get("uuid"))
        content = body.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for block in blocks:
            if isinstance(block, Mapping):
                yield from self._open.add(block)

    def update_usage(self, parent: str | None, reported: Any) -> Iterator[Event]:
        """The API has said what the answer used in the end; a line for what the record does not have yet.

        A tool may be done before that: its result has closed the answer by then.
        """
        group = self._open if self._open is not None else self._closed
        if group is None or group.parent != parent:
            return
        group.usage.update(_present(reported))
        if group is self._closed:
            more = self._priced(group) - group.reported
            if more != NOTHING_USED:
                group.reported += more
                self.used += more
                extra = ESTIMATED if more.cost_microusd else None
                yield AssistantEvent(
                    usage=more, extra=extra, turn=group.turn, parent_tool_use_id=parent
                )

    def close(self, parent: str | None = None, *, only: bool = False) -> Iterator[Event]:
        """The rest of the open group, if there is one; with `only`, if it is that of `parent`."""
        group = self._open
        if group is None or (only and group.parent != parent):
            return
        self._open, self._closed = None, group
        group.reported = self._priced(group)
        self.used += group.reported
        yield from group.close()

    def _priced(self, group: _Group) -> Usage:
        """What the answer used, as far as it is known, at what that is taken to cost."""
        usage = usage_of(group.usage)
        cost = self._price(group.model, usage) if usage != NOTHING_USED else None
        return usage if cost is None else msgspec.structs.replace(usage, cost_microusd=cost)

    def abandon(self) -> Iterator[Event]:
        """What was heard of an answer that will never be whole: without an end it is not history."""
        if self._open is not None:
            group, self._open = self._open, None
            yield from group.release()

    def _turn_of(self, name: str, parent: str | None) -> int | None:
        """A subagent's answers are no turns of the agent."""
        if parent is not None:
            return None
        if name != self._message_id:
            self._message_id = name
            self._last_turn += 1
        return self._last_turn


class _Group:
    """The lines of one answer."""

    def __init__(self, name: str, parent: str | None, turn: int | None) -> None:
        self.name = name
        self.parent = parent
        self.usage: dict[str, Any] = {}
        self.reported = NOTHING_USED
        """What the record says that it used."""
        self.model = ""
        self.uuid: str | None = None
        self.turn = turn
        self._index = 0
        self._held: AssistantEvent | None = None

    def add(self, block: Mapping[str, Any]) -> Iterator[Event]:
        if block.get("type") in CALLS:
            yield from self.release()
            yield self._placed(
                ToolUseEvent(
                    tool_name=str(block.get("name")),
                    tool_use_id=_text(block.get("id")),
                    input=block.get("input"),
                    extra=None if block["type"] == "tool_use" else {"kind": block["type"]},
                )
            )
            return
        # Named by its own line of the transcript, not by the line of the block that follows.
        said = msgspec.structs.replace(_said(block), uuid=self.uuid)
        if self._held is not None and (self._held.content or not said.content):
            yield from self.release()
        self._held = _together(self._held, said)

    def close(self) -> Iterator[Event]:
        last = self._held or AssistantEvent()
        self._held = None
        spent = self.reported if self.reported != NOTHING_USED else None
        extra = {**(last.extra or {}), **ESTIMATED} if self.reported.cost_microusd else last.extra
        yield self._placed(msgspec.structs.replace(last, usage=spent, extra=extra, end=True))

    def release(self) -> Iterator[Event]:
        if self._held is not None:
            held, self._held = self._held, None
            yield self._placed(held)

    def _placed(self, event: AssistantEvent | ToolUseEvent) -> Event:
        index, self._index = self._index, self._index + 1
        return msgspec.structs.replace(
            event,
            turn=self.turn,
            index=index,
            uuid=event.uuid or self.uuid,
            parent_tool_use_id=self.parent,
        )


def body_of(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What holds the content of a message: its `message`, or the message itself, as some versions send it."""
    body = message.get("message")
    if isinstance(body, Mapping):
        return body
    return message if "content" in message else None


def _said(block: Mapping[str, Any]) -> AssistantEvent:
    match block:
        case {"type": "text", "text": str(text)}:
            return AssistantEvent(content=text)
        case {"type": "thinking", "thinking": str(thought)}:
            signature = block.get("signature")
            return AssistantEvent(
                thinking=thought, extra={"signature": signature} if signature else None
            )
        case _:
            return AssistantEvent(extra={"block": dict(block)})


def _together(first: AssistantEvent | None, second: AssistantEvent) -> AssistantEvent:
    """A thought and the text that follows it, on one line."""
    if first is None:
        return second
    return msgspec.structs.replace(first, content=second.content, uuid=second.uuid)


def _present(reported: Any) -> dict[str, Any]:
    if not isinstance(reported, Mapping):
        return {}
    return {name: value for name, value in reported.items() if value is not None}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


DISABLED = re.compile(r"No such tool available: (?P<tool>[\w-]+)\. .*\bdisabled\b")
AT_THE_END = "it was not allowed"


class Denials:
    """Those of one run."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def notice(self, event: SystemEvent) -> None:
        """Do not report again what was just reported."""
        match payload_of(event):
            case Denied(tool_use_id=str(call)):
                self._reported.add(call)
            case _:
                pass

    def in_tool_result(self, call: str | None, reason: str | None) -> Iterator[Event]:
        """The denial that a failed call comes to, when its tool does not exist for the agent."""
        matched = DISABLED.search(reason or "")
        if matched is not None:
            text = f"{matched['tool']} is not among the tools of this agent"
            yield from self._report(matched["tool"], text, call)

    def in_result(self, result: Mapping[str, Any]) -> Iterator[Event]:
        """Return what the run's result lists and was not reported yet."""
        listed = result.get("permission_denials")
        for one in listed if isinstance(listed, list) else ():
            match one:
                case {"tool_name": str(tool)}:
                    call = one.get("tool_use_id")
                    yield from self._report(
                        tool, AT_THE_END, call if isinstance(call, str) else None
                    )
                case _:
                    pass

    def _report(self, tool: str, reason: str, call: str | None) -> Iterator[Event]:
        if call is None or call not in self._reported:
            self._reported.add(call or "")
            yield describe(Denied(tool_name=tool, reason=reason, tool_use_id=call), reason)
