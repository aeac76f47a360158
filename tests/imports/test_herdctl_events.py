"""herdctl's output lines as events: what they say is kept, what has no word here is kept as a warning."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from imports.foreign_trees import lines
from nightherd.engine.imports.context import Unreadable
from nightherd.imports.herdctl_events import read_events
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    payload_of,
)
from nightherd.model.journal.system import SystemSubtype, Warned
from nightherd.model.usage import Usage


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "job.jsonl"


def translate(output: Path, *values: Any) -> tuple[list[Event], list[Unreadable]]:
    output.write_text(lines(*values))
    problems: list[Unreadable] = []
    return list(read_events(output, problems.append)), problems


def test_each_type_is_translated_field_by_field(output: Path) -> None:
    at = "2026-01-02T03:04:05.678Z"

    events, problems = translate(
        output,
        {"type": "system", "subtype": "init", "content": "Session started", "timestamp": at},
        {"type": "assistant", "content": "Hm", "partial": True},
        {"type": "assistant", "content": "Hm.", "usage": {"input_tokens": 3, "output_tokens": 4}},
        {"type": "tool_use", "tool_name": "Bash", "tool_use_id": "t1", "input": "ls"},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "result": {"a": 1},
            "success": False,
            "error": "no",
        },
        {"type": "error", "message": "out of luck", "code": "E", "stack": "at line 1"},
    )

    assert problems == []
    init, partial, said, call, result, error = events
    assert isinstance(init, SystemEvent)
    assert (init.subtype, init.content) == (SystemSubtype.INIT, "Session started")
    assert init.timestamp == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    assert partial == AssistantEvent(content="Hm", partial=True)
    usage = Usage(input_tokens=3, output_tokens=4)
    assert said == AssistantEvent(content="Hm.", usage=usage, turn=1)
    assert call == ToolUseEvent(tool_name="Bash", tool_use_id="t1", input="ls", turn=1, end=True)
    assert result == ToolResultEvent(
        tool_use_id="t1", result={"a": 1}, success=False, error="no", turn=1, end=True
    )
    assert error == ErrorEvent(message="out of luck", code="E", stack="at line 1")


def test_calls_belong_to_the_answer_before_them(output: Path) -> None:
    call = {"type": "tool_use", "tool_name": "Bash"}
    result = {"type": "tool_result", "result": "ok"}

    events, _ = translate(output, {"type": "assistant", "content": "a"}, call, call, result, call)

    ends = [(type(event).__name__, event.turn, getattr(event, "end", None)) for event in events]
    assert ends == [
        ("AssistantEvent", 1, False),
        ("ToolUseEvent", 1, False),
        ("ToolUseEvent", 1, True),
        ("ToolResultEvent", 1, True),
        ("ToolUseEvent", 2, True),
    ]


def test_copy_of_the_answer_is_no_result_of_a_tool(output: Path) -> None:
    answer = {"type": "assistant", "content": "All done."}
    copy = {"type": "tool_result", "result": "All done.", "success": True}
    real = {"type": "tool_result", "tool_use_id": "t", "result": "All done."}

    events, _ = translate(output, copy, answer, real, copy)

    assert [type(event) for event in events] == [ToolResultEvent, AssistantEvent, ToolResultEvent]


@pytest.mark.parametrize(
    "line",
    [
        {"type": "telepathy", "content": "?"},
        {"type": "system", "subtype": "status", "content": "requesting"},
        {"type": "system", "content": "no subtype"},
        {"type": "assistant", "content": [{"type": "text"}]},
        {"type": "tool_use", "input": "no name"},
        {"type": "error", "code": "no message"},
        {},
    ],
)
def test_line_without_a_word_here_is_kept_as_a_warning(line: dict[str, Any], output: Path) -> None:
    ((event,), problems) = translate(output, line)

    assert isinstance(event, SystemEvent)
    assert payload_of(event) == Warned(code="unknown_line")
    assert event.content == lines(line).rstrip("\n")
    assert problems == []


def test_malformed_line_is_kept_and_listed_and_hides_nothing(output: Path) -> None:
    good = {"type": "assistant", "content": "still here"}

    events, problems = translate(output, good, '{"type":"assis{"type":"assistant"}', "", good)

    assert [(one.file, one.line) for one in problems] == [(str(output), 2)]
    assert [getattr(event, "content", None) for event in events] == [
        "still here",
        '{"type":"assis{"type":"assistant"}',
        "still here",
    ]


def test_torn_end_is_kept_and_not_listed(output: Path) -> None:
    output.write_text('{"type":"assistant","content":"a"}\n{"type":"assist')
    problems: list[Unreadable] = []

    events = list(read_events(output, problems.append))

    assert problems == []
    assert getattr(events[-1], "content", None) == '{"type":"assist'


def test_thousands_of_bad_lines_are_all_kept_and_not_all_listed(output: Path) -> None:
    events, problems = translate(output, *["{"] * 3000)

    assert len(events) == 3000
    assert len(problems) == 20


def test_herdctls_end_is_not_the_end_of_the_job(output: Path) -> None:
    ((event,), _) = translate(output, {"type": "system", "subtype": "end"})

    assert isinstance(event, SystemEvent)
    assert event.subtype is SystemSubtype.SESSION_END


def test_numbers_that_are_no_counts_are_no_usage(output: Path) -> None:
    usage = {"input_tokens": -1, "output_tokens": True, "cache_read_input_tokens": 10**30}

    ((event,), _) = translate(output, {"type": "assistant", "content": "a", "usage": usage})

    assert isinstance(event, AssistantEvent)
    assert event.usage is None
