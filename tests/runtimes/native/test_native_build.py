"""Messages made directly from their lines are what validation makes of them; it gets everything that is not plain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic_ai import messages as m
from pydantic_ai.usage import RequestUsage

from nightherd.model.journal.event import (
    AssistantEvent,
    MessageEvent,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.runtimes.native.build import NEVER, build_answer, build_request
from nightherd.runtimes.native.decode import decode
from nightherd.runtimes.native.encode import encode
from runtimes.native import messages as made

ADAPTER = m.ModelMessagesTypeAdapter
UNHURRIED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
AT = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
STAMP = "2026-01-02T03:04:05.000006Z"
USAGE = RequestUsage(input_tokens=3, output_tokens=2, details={"reasoning_tokens": 1})


def built(lines: Sequence[MessageEvent], constants: dict[str, Any]) -> m.ModelMessage | None:
    """As the lines come back from a journal."""
    answer = [one for one in lines if isinstance(one, AssistantEvent | ToolUseEvent)]
    request = [one for one in lines if isinstance(one, SystemEvent | ToolResultEvent)]
    return build_answer(answer) if answer else build_request(request, {}, constants)


def built_again(message: m.ModelMessage) -> m.ModelMessage | None:
    encoded = encode(message, turn=1)
    lines = [msgspec.json.decode(msgspec.json.encode(one), type=type(one)) for one in encoded.lines]
    return built(lines, {one.hash: one.body for one in encoded.constants})


@given(made.conversations())
@UNHURRIED
def test_what_is_made_directly_dumps_as_what_was_said(messages: list[m.ModelMessage]) -> None:
    found = [(one, message) for message in messages if (one := built_again(message)) is not None]

    assert ADAPTER.dump_json([one for one, _ in found]) == ADAPTER.dump_json(
        [message for _, message in found]
    )


@pytest.mark.parametrize(
    "message",
    [
        m.ModelResponse([m.TextPart("hay")], usage=USAGE, model_name="some-model", timestamp=AT),
        m.ModelResponse(
            [
                m.ThinkingPart("hm", signature="s", provider_name="p", id="t"),
                m.TextPart("hay", id="p"),
                m.ToolCallPart("Eat", {"a": [1]}, "c1"),
                m.ToolCallPart("Eat", '{"a": 1}', "c2", provider_details={"n": 1}),
            ],
            usage=USAGE,
            timestamp=AT,
            provider_name="p",
            provider_url="https://example.test",
            provider_response_id="r",
            provider_details={"finish_reason": "stop", "created": 1.5, "odd": None},
            finish_reason="tool_call",
        ),
        m.ModelResponse([m.ToolCallPart("Eat", {}, "c1")], timestamp=AT),
        m.ModelResponse([], timestamp=AT),
        m.ModelRequest([m.UserPromptPart("graze", timestamp=AT)], instructions="be calm"),
        m.ModelRequest(
            [
                m.ToolReturnPart("Eat", "eaten", "c1", timestamp=AT),
                m.ToolReturnPart("Eat", "no", "c2", timestamp=AT, outcome="denied"),
                m.UserPromptPart("go on", timestamp=AT),
            ]
        ),
    ],
    ids=["text", "everything", "call", "nothing", "prompt", "results"],
)
def test_plain_messages_are_made_directly(message: m.ModelMessage) -> None:
    assert built_again(message) == message


def test_what_lines_say_for_others_does_not_count() -> None:
    line = AssistantEvent(content="hay", timestamp=AT, extra={"setup": "x", "cost_source": "list"})
    call = ToolUseEvent(tool_name="Eat", tool_use_id="c1", input={}, extra={"idempotent": True})

    assert built([line, call], {}) == m.ModelResponse(
        [m.TextPart("hay"), m.ToolCallPart("Eat", {}, "c1")], timestamp=AT
    )


def test_lines_of_other_runtimes_are_made_directly() -> None:
    prompt = SystemEvent(subtype=SystemSubtype.USER_INPUT, content="go", timestamp=AT, end=True)
    result = ToolResultEvent(tool_use_id="c1", result="out", error="bad", success=False, end=True)

    answer = build_answer([ToolUseEvent(tool_name="Eat", tool_use_id="c1", input={})])
    request = build_request([result, prompt], {"c1": "Eat"}, {})

    assert answer == m.ModelResponse([m.ToolCallPart("Eat", {}, "c1")], timestamp=NEVER)
    assert request == m.ModelRequest(
        [
            m.ToolReturnPart("Eat", "out\nbad", "c1", timestamp=NEVER, outcome="failed"),
            m.UserPromptPart("go", timestamp=AT),
        ]
    )


@pytest.mark.parametrize(
    "line",
    [
        AssistantEvent(content="hay", extra={"response": {"run_id": "r"}}),
        AssistantEvent(content="hay", extra={"response": {"usage": {"input_tokens": 3.0}}}),
        AssistantEvent(content="hay", extra={"response": {"usage": {"cost": "1.5"}}}),
        AssistantEvent(content="hay", extra={"response": {"usage": {"details": {"a": "1"}}}}),
        AssistantEvent(content="hay", extra={"response": {"model_name": 7}}),
        AssistantEvent(content="hay", extra={"response": {"timestamp": "2026-01-02T03:04:05"}}),
        AssistantEvent(content="hay", extra={"response": {"timestamp": "yesterday Z"}}),
        AssistantEvent(content="hay", extra={"response": {"finish_reason": "over"}}),
        AssistantEvent(content="hay", extra={"response": {"provider_details": {"a": {}}}}),
        AssistantEvent(content="hay", extra={"response": {"json": "{}"}}),
        AssistantEvent(content="hay", extra={"part": {"citations": []}}),
        AssistantEvent(content="hay", extra={"part": {"signature": "s"}}),
        AssistantEvent(content="hay", thinking="hm"),
        AssistantEvent(extra={"part": {"id": "p"}}),
        AssistantEvent(extra={"whole": {"part_kind": "file"}}),
        ToolUseEvent(tool_name="Eat", tool_use_id="c1", input=7),
        ToolUseEvent(tool_name="Eat", tool_use_id="", input={}),
        ToolUseEvent(tool_name="Eat", tool_use_id="c1", input={}, extra={"part": {"id": 7}}),
        ToolResultEvent(tool_use_id="c1", result={"a": 1}),
        ToolResultEvent(tool_use_id="", result="eaten"),
        ToolResultEvent(
            tool_use_id="c1",
            result="eaten",
            extra={"part": {"timestamp": STAMP, "outcome": "else"}},
        ),
        ToolResultEvent(tool_use_id="c1", result="eaten", extra={"part": {}}),
        SystemEvent(subtype=SystemSubtype.USER_INPUT, extra={"before": []}),
        SystemEvent(subtype=SystemSubtype.USER_INPUT, content="go", extra={"after": [{}]}),
        SystemEvent(subtype=SystemSubtype.USER_INPUT, extra={"request": {"run_id": "r"}}),
        SystemEvent(
            subtype=SystemSubtype.USER_INPUT, extra={"request": {"instructions": {"context": "x"}}}
        ),
        SystemEvent(
            subtype=SystemSubtype.USER_INPUT,
            extra={"part": {"content": ["a"], "timestamp": STAMP}},
        ),
    ],
    ids=repr,
)
def test_everything_else_is_left_to_validation(line: MessageEvent) -> None:
    assert built([line], {}) is None


def test_both_ways_keep_their_order() -> None:
    plain = m.ModelResponse([m.TextPart("hay")], timestamp=AT)
    odd = m.ModelResponse([m.TextPart("hay")], timestamp=AT, run_id="r")
    asked = m.ModelRequest([m.UserPromptPart("go", timestamp=AT)])
    messages: list[m.ModelMessage] = [plain, asked, odd, asked, plain]

    found = decode([line for message in messages for line in encode(message).lines])

    assert ADAPTER.dump_json(found) == ADAPTER.dump_json(messages)
