"""`sessions/<session>.context`: what the next request of a session that waits would hold, a message a line.

A summary stands for what it covers. Bodies too large for a journal's line are cut: the journal has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from nightherd.mirror.envelope import cut
from nightherd.model.context_window import contextual
from nightherd.model.event import Event
from nightherd.model.message import Message, Speaker, whole_messages

Conversation = Callable[[str], Iterable[Event]]
"""Everything said in a session, by its id, what it was forked from included."""


def context_text(events: Iterable[Event]) -> bytes:
    """The file."""
    encoder = msgspec.json.Encoder()
    lines = (_line(message) for message in whole_messages(contextual(events)))
    return b"".join(encoder.encode(line) + b"\n" for line in lines)


def _line(message: Message) -> dict[str, Any]:
    line: dict[str, Any] = {"role": message.speaker.value, "content": cut(message.text)}
    if message.speaker is Speaker.ASSISTANT and message.calls:
        line["tool_calls"] = [
            {"id": call.tool_use_id, "name": call.tool_name, "input": call.input}
            for call in message.calls
        ]
    if message.speaker is Speaker.TOOL:
        (first, *_) = message.results
        line["tool_call_id"] = first.tool_use_id
        line["is_error"] = first.success is False
    return line
