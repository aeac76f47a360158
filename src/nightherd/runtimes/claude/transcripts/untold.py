"""What our record has and a session's transcript lacks: results of tools that Claude would not know of when it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from nightherd.model.event import Event, ToolResultEvent, ToolUseEvent

HEADING = (
    "These calls of yours had finished, but their results did not get into this conversation. "
    "They are done: do not make them again."
)
SHOWN = 4_000
"""Characters of one result."""


def untold_results(history: Iterable[Event], transcript: Iterable[bytes]) -> str | None:
    """The results that are on record and not in the transcript, in words for the agent; None when there are none."""
    told = set(_results_in(transcript))
    calls: dict[str, ToolUseEvent] = {}
    missing: dict[str, ToolResultEvent] = {}
    for event in history:
        match event:
            case ToolUseEvent(tool_use_id=str(call)):
                calls[call] = event
            # What has no name of Claude's own was not said by it, but noted when a worker was lost.
            case ToolResultEvent(tool_use_id=str(call), uuid=str()) if call not in told:
                missing[call] = event
            case _:
                pass
    if not missing:
        return None
    return "\n\n".join([HEADING, *(_told(calls.get(call), one) for call, one in missing.items())])


def _told(call: ToolUseEvent | None, result: ToolResultEvent) -> str:
    what = f"{call.tool_name} {json.dumps(call.input)}" if call is not None else "A call"
    how = "succeeded" if result.success else "failed"
    return f"{what[:SHOWN]} {how}:\n{_text(result.result)[:SHOWN]}"


def _text(result: Any) -> str:
    if isinstance(result, list):
        return "\n".join(
            str(part["text"]) for part in result if isinstance(part, dict) and "text" in part
        )
    return str(result if result is not None else "")


def _results_in(transcript: Iterable[bytes]) -> Iterator[str]:
    for line in transcript:
        if b"tool_result" not in line:
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        match entry:
            case {"message": {"content": list(blocks)}}:
                for block in blocks:
                    match block:
                        case {"type": "tool_result", "tool_use_id": str(call)}:
                            yield call
                        case _:
                            pass
            case _:
                pass
