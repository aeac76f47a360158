"""Messages made directly are what validation makes of the same dumps; it gets everything that is not plain."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic_ai import messages as m

from nightherd.model.event import describe
from nightherd.runtimes.native.build import build
from nightherd.runtimes.native.decode import Reader, load
from nightherd.runtimes.native.encode import encode
from runtimes.native import messages as made

ADAPTER = m.ModelMessagesTypeAdapter
UNHURRIED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
AT = "2026-01-02T03:04:05.000006Z"
ANSWER: dict[str, Any] = {
    "kind": "response",
    "timestamp": AT,
    "usage": {"input_tokens": 3, "output_tokens": 2},
    "model_name": "some-model",
    "parts": [
        {"part_kind": "text", "content": "hay"},
        {"part_kind": "tool-call", "tool_name": "Eat", "args": {"a": [1]}, "tool_call_id": "c1"},
    ],
}
RESULT: dict[str, Any] = {
    "part_kind": "tool-return",
    "tool_name": "Eat",
    "content": "eaten",
    "tool_call_id": "c1",
    "timestamp": AT,
    "outcome": "success",
}
REQUEST: dict[str, Any] = {"kind": "request", "instructions": "graze", "parts": [RESULT]}


def validated(dump: dict[str, Any]) -> m.ModelMessage:
    (message,) = ADAPTER.validate_json(msgspec.json.encode([dump]))
    return message


@given(made.conversations())
@UNHURRIED
def test_what_is_made_directly_dumps_as_what_is_validated(messages: list[m.ModelMessage]) -> None:
    reader = Reader()
    for message in messages:
        encoded = encode(message, turn=1)
        for line in (*map(describe, encoded.constants), *encoded.lines):
            reader.add(line)
    made_directly = [(one, dump) for dump in reader.dumps if (one := build(dump)) is not None]
    expected = [validated(dump) for _, dump in made_directly]
    assert ADAPTER.dump_json([one for one, _ in made_directly]) == ADAPTER.dump_json(expected)


@pytest.mark.parametrize("dump", [ANSWER, REQUEST])
def test_plain_messages_are_made_directly(dump: dict[str, Any]) -> None:
    found = build(dump)

    assert found == validated(dump)


@pytest.mark.parametrize(
    "dump",
    [
        {**ANSWER, "finish_reason": "stop"},
        {**ANSWER, "usage": {"input_tokens": 3.0}},
        {**ANSWER, "usage": {"details": {"a": 1}}},
        {**ANSWER, "model_name": 7},
        {**ANSWER, "timestamp": "2026-01-02T03:04:05+01:00"},
        {**ANSWER, "timestamp": "yesterday Z"},
        {**ANSWER, "parts": [{"part_kind": "thinking", "content": "hm"}]},
        {**ANSWER, "parts": [{"part_kind": "text", "content": "hay", "id": "p"}]},
        {**ANSWER, "parts": [{"part_kind": "text", "content": 7}]},
        {**ANSWER, "parts": [{**ANSWER["parts"][1], "args": 7}]},
        {**ANSWER, "parts": [{**ANSWER["parts"][1], "tool_call_id": ""}]},
        {**REQUEST, "run_id": "r"},
        {**REQUEST, "instructions": 7},
        {**REQUEST, "parts": [{**RESULT, "content": {"a": 1}}]},
        {**REQUEST, "parts": [{**RESULT, "outcome": "else"}]},
        {**REQUEST, "parts": [{"part_kind": "system-prompt", "content": "be"}]},
        {**REQUEST, "parts": [{"part_kind": "user-prompt", "content": ["a"], "timestamp": AT}]},
    ],
)
def test_everything_else_is_left_to_validation(dump: dict[str, Any]) -> None:
    assert build(dump) is None


def test_both_ways_keep_their_order() -> None:
    odd = {**ANSWER, "finish_reason": "stop"}

    found = load([ANSWER, REQUEST, odd, REQUEST, ANSWER])

    reasons = [one.finish_reason for one in found if isinstance(one, m.ModelResponse)]
    assert [one.kind for one in found] == ["response", "request", "response", "request", "response"]
    assert reasons == [None, "stop", None]
