"""Context window: how much of a conversation the next request holds, once it has grown too large.

The older part gives way to a summary, which is an event like any other; the journal keeps everything. The
latest messages stay as they are, and a call is never parted from its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from nightherd.model.journal.event import (
    ErrorEvent,
    Event,
    SystemEvent,
    ToolUseEvent,
    is_message,
    size_of,
)
from nightherd.model.journal.message import Message, Speaker
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.text import shorten
from nightherd.model.usage import BYTES_PER_TOKEN

SUMMARY_FRAME = (
    "The conversation so far was long, and its older part is only summarised here. "
    "What follows after this summary is word for word.\n\n<summary>\n{text}\n</summary>"
)
"""How the summary of what a model no longer sees begins."""

COVERED_CALLS = "covered_calls"
"""In `extra` of the summary: the ids of calls that it no longer sees, and that are still taken."""

LINE_LIMIT = 160
MOST_LINES = 60


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a summary already stands for: the number of the last message, and its text."""

    covers: int = 0
    text: str | None = None


def plan_cut(messages: Sequence[Message], *, window: int, covered: int = 0) -> int:
    """The number of the last message to be summarised; `covered` when no more than before can be.

    All but the last `window` are, or fewer: what is left never begins with the result of a call.
    """
    cut = len(messages) - window
    while cut > covered and messages[cut].speaker is Speaker.TOOL:
        cut -= 1
    return max(cut, covered)


def tokens_of(messages: Iterable[Message], summary: str = "") -> int:
    """How large these messages are, roughly, with the summary before them."""
    size = len(summary.encode(errors="replace"))
    size += sum(size_of(line) for message in messages for line in message.lines)
    return size // BYTES_PER_TOKEN


def contextual(events: Iterable[Event]) -> Iterator[Event]:
    """The events that the next request is built from: the latest summary stands for what it covers.

    Without one they are what was given. Events that belong to no message all stay.
    """
    everything = list(events)
    summary = latest_summary(everything)
    if summary is None:
        return iter(everything)
    return _with_summary(everything, summary, covers_of(summary))


def _with_summary(events: Iterable[Event], summary: SystemEvent, covers: int) -> Iterator[Event]:
    ended, is_told = 0, False
    calls: list[str] = []
    for event in events:
        if isinstance(event, ErrorEvent) or not is_message(event):
            yield event
            continue
        number = ended + 1
        ended += event.end
        if number <= covers:
            if isinstance(event, ToolUseEvent) and event.tool_use_id:
                calls.append(event.tool_use_id)
            continue
        if not is_told:
            yield SystemEvent(
                subtype=SystemSubtype.USER_INPUT,
                content=SUMMARY_FRAME.format(text=summary.content or ""),
                timestamp=summary.timestamp,
                extra={COVERED_CALLS: calls} if calls else None,
                end=True,
            )
            is_told = True
        yield event


def latest_summary(events: Sequence[Event]) -> SystemEvent | None:
    """The summary that counts: the last one."""
    # Sieved first: most of a long conversation is something else, and nearly always there is none.
    asides = [event for event in events if type(event) is SystemEvent]
    found = (event for event in reversed(asides) if event.subtype is SystemSubtype.SUMMARY)
    return next(found, None)


def covers_of(event: SystemEvent) -> int:
    """The number of the last message that a summary stands for."""
    covers = (event.extra or {}).get("covers_message")
    return covers if isinstance(covers, int) else 0


def digest(messages: Sequence[Message], before: str | None = None) -> str:
    """A summary that needs no model: what was asked, said and done, a line each, the latest of them.

    The same messages always give the same text.
    """
    lines = [line for message in messages for line in _lines(message)]
    hidden = len(lines) - MOST_LINES
    if hidden > 0:
        lines = [f"({hidden} earlier lines are left out)", *lines[-MOST_LINES:]]
    earlier = [shorten(before, MOST_LINES * LINE_LIMIT)] if before else []
    return "\n".join([*earlier, *lines])


def _lines(message: Message) -> Iterator[str]:
    match message.speaker:
        case Speaker.TOOL:
            for result in message.results:
                word = "failed" if result.success is False else "answered"
                yield _line(f"- a tool {word}: {message.text}")
        case speaker:
            if message.text.strip():
                yield _line(f"- {speaker.value}: {message.text}")
            for call in message.calls:
                yield _line(f"- assistant called {call.tool_name}: {call.input}")


def _line(text: str) -> str:
    return shorten(" ".join(text.split()), LINE_LIMIT)
