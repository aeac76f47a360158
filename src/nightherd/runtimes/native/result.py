"""Result: the line that says what a call came to, as `dump.py` lays lines out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic_ai.messages import ToolCallPart

from nightherd.model.event import ToolResultEvent
from nightherd.model.text import whole_text
from nightherd.runtimes.native.toolset import Answered


def result_line(
    call: ToolCallPart, answered: Answered, *, turn: int, at: datetime, begins_request: bool
) -> ToolResultEvent:
    """The line; the first result after an answer begins the next request to the model."""
    outcome = answered.outcome
    part: dict[str, Any] = {"tool_name": call.tool_name, "timestamp": at.isoformat()}
    if answered.denied is not None:
        part["outcome"] = "denied"
    result, error = _whole(outcome.result), _whole(outcome.error)
    if result is None and error is None:
        result = ""  # the model is told that there was nothing, not nothing at all
    return ToolResultEvent(
        tool_use_id=call.tool_call_id,
        result=result,
        success=outcome.success,
        error=error,
        full_output=outcome.full_output,
        extra={**({"request": {}} if begins_request else {}), "part": part},
        turn=turn,
        index=0,
        end=True,
    )


def _whole(text: str | None) -> str | None:
    return None if text is None else whole_text(text)
