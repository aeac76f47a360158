"""What our record has and a session's transcript lacks: answers and results that Claude would not know of when it goes on.

Claude writes its transcript a moment after it speaks; one that is killed in between has said what it never wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from nightherd.model.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent

SAID = "You had said this already, but it did not get into this conversation:"
DONE = (
    "These calls of yours had finished, but their results did not get into this conversation. "
    "They are done: do not make them again."
)
SHOWN = 4_000
"""Characters of one answer or result."""
MOST = 100
"""Answers, and results: the last ones. What is older than that is in the files the agent works on."""


def untold(history: Iterable[Event], transcript: Iterable[bytes]) -> str | None:
    """What is on record and not in the transcript, in words for the agent; None when nothing is missing."""
    results, texts = _told_in(transcript)
    calls: dict[str, ToolUseEvent] = {}
    said: list[str] = []
    done: dict[str, ToolResultEvent] = {}
    for event in history:
        match event:
            case ToolUseEvent(tool_use_id=str(call)):
                calls[call] = event
            # What has no name of Claude's own was not said by it, but noted when a worker was lost.
            case ToolResultEvent(tool_use_id=str(call), uuid=str()) if call not in results:
                done[call] = event
            # An answer to a subagent's request stands in another transcript.
            case AssistantEvent(content=str(text), uuid=str(), parent_tool_use_id=None) if (
                not event.partial and text not in texts
            ):
                said.append(text[:SHOWN])
            case _:
                pass
    parts = [SAID, *said[-MOST:]] if said else []
    if done:
        last = list(done.items())[-MOST:]
        parts += [DONE, *(_account(calls.get(call), one) for call, one in last)]
    return "\n\n".join(parts) or None


def _account(call: ToolUseEvent | None, result: ToolResultEvent) -> str:
    what = f"{call.tool_name} {json.dumps(call.input)}" if call is not None else "A call"
    how = "succeeded" if result.success else "failed"
    return f"{what[:SHOWN]} {how}:\n{_text(result.result)[:SHOWN]}"


def _text(result: Any) -> str:
    if isinstance(result, list):
        return "\n".join(
            str(part["text"]) for part in result if isinstance(part, dict) and "text" in part
        )
    return str(result if result is not None else "")


def _told_in(transcript: Iterable[bytes]) -> tuple[set[str], set[str]]:
    """The calls whose results stand in it, and everything that was said."""
    results: set[str] = set()
    texts: set[str] = set()
    for block in _blocks(transcript):
        match block:
            case {"type": "tool_result", "tool_use_id": str(call)}:
                results.add(call)
            case {"type": "text", "text": str(text)}:
                texts.add(text)
            case _:
                pass
    return results, texts


def _blocks(transcript: Iterable[bytes]) -> Iterator[Any]:
    for line in transcript:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        match entry:
            case {"message": {"content": list(blocks)}}:
                yield from blocks
            case _:
                pass
