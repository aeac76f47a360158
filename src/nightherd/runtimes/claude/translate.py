"""What each of Claude's messages means in our events (docs/guide/claude.md has the table).

Nothing that Claude says ends a run by being unknown or broken: it is recorded as a warning. A result is
kept until the stream ends, because a background task may make another one follow; it becomes
`system/complete` or an error, and never a second copy of the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    describe,
)
from nightherd.model.journal.system import (
    Complete,
    Init,
    SystemSubtype,
    Warned,
)
from nightherd.model.secrets import NO_SECRETS, Secrets
from nightherd.model.units import MicroUsd
from nightherd.model.usage import NOTHING_USED, Usage
from nightherd.ports import NoTextStream, TextStream
from nightherd.runtimes.claude.answer import (
    Answers,
    Denials,
    Price,
    Spending,
    at_least_nothing,
    body_of,
    no_price,
)
from nightherd.runtimes.claude.mcp import ServerNews
from nightherd.runtimes.claude.news import (
    NEWS,
    SILENT,
    auth_status_of,
    error_of,
    init_of,
    progress_of,
)
from nightherd.runtimes.claude.outcome import MESSAGES, Report, not_kept, reported
from nightherd.runtimes.claude.usage_limit import ApiError, UsageLimits, is_api_error

RAW_CHARACTERS = 2000
"""Kept of a message that is not understood."""

Message = Mapping[str, Any]


class Translator:
    """Translates the messages of one run, in order."""

    def __init__(
        self,
        *,
        runtime: str,
        first_turn: int,
        is_resumed: bool,
        stream: TextStream | None = None,
        price: Price = no_price,
        usage_limits: UsageLimits | None = None,
        secrets: Secrets = NO_SECRETS,
        answered: str | None = None,
    ) -> None:
        """`answered` is a call whose result is on record already, and is not recorded again."""
        self._answered = answered
        self._secrets = secrets
        self._usage_limits = usage_limits if usage_limits is not None else UsageLimits()
        self._runtime = runtime
        self._answers = Answers(first_turn, price)
        self._spending = Spending(is_resumed=is_resumed)
        self._stream = stream if stream is not None else NoTextStream()
        self._init: Init | None = None
        self._servers = ServerNews()
        self._result: Message | None = None
        self._counted: Message | None = None
        """The last result, whether Claude has gone on after it or not."""
        self._failed: Message | None = None
        self._api_error = ApiError()
        self._denials = Denials()
        self._open_tasks = 0
        self._last_delay_ms: int | None = None

    @property
    def session(self) -> str | None:
        """Claude's id of the session, once it has said it."""
        return self._init.runtime_session_id if self._init is not None else None

    @property
    def has_result(self) -> bool:
        """Whether Claude has said how the run came out, and may continue only for what runs in the background."""
        return self._result is not None

    @property
    def has_open_tasks(self) -> bool:
        """Whether something runs in the background that another answer may come from."""
        return self._open_tasks > 0

    def go_on(self) -> None:
        """Claude has been told something more: what it said was not how the run came out."""
        self._result = None

    def hear(self, said: bytes | Message) -> Iterator[Event]:
        """The events of one line of output, or of the message that was in it."""
        return self.line(said) if isinstance(said, bytes) else self.message(said)

    def line(self, line: bytes) -> Iterator[Event]:
        """The events of one line of output."""
        if not line.strip():
            return
        try:
            message = json.loads(line)
        except ValueError:
            yield self._warning(
                "malformed_line", "a line from claude is not JSON", line.decode(errors="replace")
            )
            return
        if not isinstance(message, Mapping):
            yield self._warning("malformed_line", "a line from claude is not a message", message)
            return
        yield from self.message(message)

    def message(self, message: Message) -> Iterator[Event]:
        """The events of one message."""
        kind = _text(message.get("type")) or ""
        translate = self._KINDS.get(kind)
        if translate is not None:
            for event in translate(self, message):
                yield event
                yield from self._servers.see(event)
        elif kind not in SILENT:
            yield self._warning(
                "unknown_message", f"claude sent a message of type {kind!r}", message
            )

    def finish(
        self, denials: Sequence[Message] = (), *, is_waiting: bool = False
    ) -> Iterator[Event]:
        """The last events, when nothing more will come; none about the outcome when Claude has not said it.

        `denials` are refusals that nothing was said after. A run that waits for a person has only what it has used.
        """
        for message in denials:
            yield from self.message(message)
        if is_waiting:
            yield from self._answers.abandon()
            rest = self._rest()
            if rest is not None:
                yield rest
            return
        if self._result is None:
            yield from self._answers.abandon()
            return
        if not self._spending.is_cost_known:
            yield self._warning(
                "cost_unknown", "this version of claude reports only the cost of the whole session"
            )
        yield self._outcome(self._result)

    def cost_of_the_rest(self, result: Message | None) -> AssistantEvent | None:
        """What a run that was stopped before it gave `result` had used, beyond what its answers said.

        It stands for an answer that was cut off, and is no history. Its cost takes the place of what was only
        estimated: where that was too much, it is below nothing.
        """
        if result is None or result is self._counted:
            return None
        self._spending.add(result)
        return self._rest()

    def _rest(self) -> AssistantEvent | None:
        """What was used beyond what the answers said."""
        whole = self._used()
        rest = at_least_nothing(whole - self._answers.used)
        cost = whole.cost_microusd - self._answers.used.cost_microusd
        rest = msgspec.structs.replace(rest, cost_microusd=MicroUsd(cost))
        return AssistantEvent(usage=rest) if rest != NOTHING_USED else None

    def _used(self) -> Usage:
        """What the run has used. What it cost is what Claude says, or else what it is taken to have cost."""
        if self._spending.is_cost_known:
            return self._spending.usage
        cost = self._answers.used.cost_microusd
        return msgspec.structs.replace(self._spending.usage, cost_microusd=cost)

    def _outcome(self, result: Message) -> Event:
        usage = self._used()
        if self._failed is not None:
            return reported(
                self._report(self._failed),
                usage=msgspec.to_builtins(usage),
                uuid=_text(self._failed.get("uuid")),
            )
        if result.get("stop_reason") == "tool_deferred":
            return not_kept(result)
        complete = describe(
            Complete(
                usage=usage,
                stop_reason=_text(result.get("stop_reason")),
                model_usage=self._spending.models or None,
                api_duration_ms=_whole(result.get("duration_api_ms")),
            )
        )
        return msgspec.structs.replace(complete, uuid=_text(result.get("uuid")))

    def _report(self, result: Message) -> Report:
        said = self._api_error
        status = result.get("api_error_status") or said.status
        errors = result.get("errors")
        text = _text(result.get("result")) or (
            "; ".join(str(error) for error in errors) if isinstance(errors, list) else ""
        )
        subtype = _text(result.get("subtype")) or ""
        text = MESSAGES.get(str(result.get("stop_reason")), text)
        return Report(
            text=text or f"claude ended with {subtype or 'an error'}",
            subtype=subtype,
            status=status if isinstance(status, int) else None,
            kind=said.kind,
            stop_reason=_text(result.get("stop_reason")) or "",
            retry_after_s=None if self._last_delay_ms is None else self._last_delay_ms / 1000,
            usage_limit=self._usage_limits.hit(said.text),
        )

    def _rate_limit(self, message: Message) -> Iterator[Event]:
        self._usage_limits.hear(message)
        yield from ()

    def _assistant(self, message: Message) -> Iterator[Event]:
        if is_api_error(message):
            self._api_error = ApiError(message)  # the result repeats it
            return
        if body_of(message) is None:
            yield self._warning("unknown_message", "claude sent an answer without content", message)
        yield from self._answers.add(message)

    def _user(self, message: Message) -> Iterator[Event]:
        if message.get("isReplay"):
            return
        yield from self._answers.close()
        body = body_of(message)
        if body is None:
            yield self._warning("unknown_message", "claude sent a result without content", message)
            return
        content = body.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        parent, uuid = _text(message.get("parent_tool_use_id")), _text(message.get("uuid"))
        for block in blocks:
            event = _tool_result(block, parent, self._answers.turn) or _user_input(block)
            if isinstance(event, ToolResultEvent):
                yield from self._denials.in_tool_result(event.tool_use_id, event.error)
            if event is not None and not self._is_known(event):
                yield msgspec.structs.replace(
                    event, uuid=uuid, parent_tool_use_id=parent, index=0, end=True
                )

    def _is_known(self, event: Event) -> bool:
        if self._answered is None or not isinstance(event, ToolResultEvent):
            return False
        return event.tool_use_id == self._answered and not event.success

    def _stream_event(self, message: Message) -> Iterator[Event]:
        parent = _text(message.get("parent_tool_use_id"))
        match message.get("event"):
            case {"type": "message_delta", "usage": usage}:
                yield from self._answers.update_usage(parent, usage)
            case {"type": "message_stop"}:
                yield from self._answers.close(parent, only=True)
            case {"type": "message_start"} if parent is None:
                self._stream.begin()
            case {
                "type": "content_block_delta",
                "index": int(block),
                "delta": {"type": "text_delta", "text": str(text)},
            } if parent is None:  # what a subagent says is not the agent's answer
                self._stream.add(block, text)
            case _:
                pass

    def _system(self, message: Message) -> Iterator[Event]:
        subtype = _text(message.get("subtype")) or ""
        news = NEWS.get(subtype)
        if subtype == "init":
            yield from self._begin(message)
        elif subtype == "background_tasks_changed":
            tasks = message.get("tasks")
            self._open_tasks = len(tasks) if isinstance(tasks, list) else 0
        elif news is not None:
            if subtype == "api_retry":
                self._last_delay_ms = _whole(message.get("retry_delay_ms"))
            system_news = news(self._secrets.mask(message))
            if system_news is not None:
                event = describe(*system_news)
                self._denials.notice(event)
                yield msgspec.structs.replace(event, uuid=_text(message.get("uuid")))
        elif subtype not in SILENT:
            yield self._warning("unknown_message", f"claude sent system/{subtype}", message)

    def _begin(self, message: Message) -> Iterator[Event]:
        """Claude introduces itself with every turn; only what is new is worth a line."""
        init = init_of(message, self._runtime)
        if init != self._init:
            self._init = init
            yield msgspec.structs.replace(describe(init), uuid=_text(message.get("uuid")))
        yield from self._servers.hear(message.get("mcp_servers"))

    def _keep_result(self, message: Message) -> Iterator[Event]:
        yield from self._answers.close()
        yield from self._denials.in_result(message)
        self._spending.add(message)
        self._result = self._counted = message
        if message.get("is_error") or message.get("subtype") != "success":
            self._failed = self._failed or message

    def _progress(self, message: Message) -> Iterator[Event]:
        yield describe(progress_of(message))

    def _auth_status(self, message: Message) -> Iterator[Event]:
        yield describe(*auth_status_of(message))

    def _error(self, message: Message) -> Iterator[Event]:
        yield error_of(message)

    def _warning(self, code: str, text: str, raw: Any = None) -> SystemEvent:
        """What is not understood, masked and in bounded length."""
        if raw is not None:
            raw = self._secrets.mask(raw)
            raw = raw if isinstance(raw, str) else json.dumps(raw, default=str)
            raw = self._secrets.mask(raw)[:RAW_CHARACTERS]
        return describe(Warned(code=code, raw=raw), text)

    _KINDS: Mapping[str, Callable[[Translator, Message], Iterator[Event]]] = {
        "system": _system,
        "assistant": _assistant,
        "user": _user,
        "stream_event": _stream_event,
        "result": _keep_result,
        "tool_progress": _progress,
        "auth_status": _auth_status,
        "rate_limit_event": _rate_limit,
        "error": _error,
    }


def _tool_result(block: Any, parent: str | None, turn: int) -> ToolResultEvent | None:
    if not isinstance(block, Mapping) or block.get("type") != "tool_result":
        return None
    failed = bool(block.get("is_error"))
    result = block.get("content")
    return ToolResultEvent(
        tool_use_id=_text(block.get("tool_use_id")),
        result=result,
        success=not failed,
        error=_first_line(result) if failed else None,
        turn=None if parent is not None else turn,
    )


def _user_input(block: Any) -> SystemEvent | None:
    """Words that were put into the conversation on the user's side while it ran."""
    match block:
        case {"type": "text", "text": str(text)}:
            return SystemEvent(subtype=SystemSubtype.USER_INPUT, content=text)
        case _:
            return None


def _first_line(result: Any) -> str:
    """What a failed tool said, as the short reason; the whole stays in the result."""
    if isinstance(result, list):
        result = next(
            (part["text"] for part in result if isinstance(part, Mapping) and "text" in part), ""
        )
    lines = str(result or "").strip().splitlines()
    return lines[0] if lines else "the tool failed"


def _whole(value: object) -> int | None:
    """`value` if it is a whole number, or can be made one."""
    return round(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
