"""Answers that can be written and not be read again: none goes on record, and one that is there is no dead end."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic_ai import messages as m
from pydantic_ai.usage import RequestUsage

from nightherd.errors import InvalidValueError
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    payload_of,
)
from nightherd.model.journal.system import Warned
from nightherd.model.secrets import find_secrets
from nightherd.model.usage import Usage
from nightherd.runtimes.native.answer import repair_answer
from nightherd.runtimes.native.conversation import recall
from nightherd.runtimes.native.decode import read_back
from nightherd.runtimes.native.encode import encode
from nightherd.runtimes.tools.files import Read
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome
from runtimes.heard import error_of
from runtimes.native.chat_api import call, chat_api, text
from runtimes.native.native_stage import (
    NativeStage,
    Record,
    Replies,
    of_type,
    results,
    says,
    subtypes,
)

COUNTED = RequestUsage(input_tokens=10, output_tokens=5)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def thought(args: Any) -> m.ModelResponse:
    """A call beside a part that only validation can read."""
    parts: list[Any] = [
        m.ThinkingPart("hm", provider_name="p", provider_details={"a": []}),
        m.TextPart("I will."),
        m.ToolCallPart("Bash", args, "c"),
    ]
    return m.ModelResponse(parts, usage=COUNTED)


@pytest.mark.parametrize(
    "answer",
    [
        thought(nested(220)),
        m.ModelResponse(
            [m.TextPart("x", provider_name="p", provider_details=nested(220))], usage=COUNTED
        ),
        m.ModelResponse([m.TextPart("x")], usage=COUNTED, finish_reason="over"),  # type: ignore[arg-type]
    ],
    ids=["arguments", "details", "reason"],
)
def test_an_answer_that_could_not_be_read_again_is_not_recorded(
    stage: NativeStage, answer: m.ModelResponse
) -> None:
    record = Record()

    events = stage.run(Replies(answer), stage.request(record))

    error = error_of(events)
    assert (error.code, (error.extra or {}).get("recoverable")) == ("malformed_answer", True)
    (line,) = of_type(events, AssistantEvent)
    assert line.usage == Usage(input_tokens=10, output_tokens=5)
    assert (line.content, line.extra, line.end) == (None, None, False)
    assert not of_type(events, ToolUseEvent)
    record.add(*events)
    model = Replies(says("done"))
    assert subtypes(stage.run(model, stage.request(record)))[-1] == "complete"
    assert [type(one) for one in model.conversations[0]] == [m.ModelRequest]


def test_arguments_that_come_as_a_text_nested_deeply_are_told_to_the_model(
    stage: NativeStage,
) -> None:
    deep = '{"a":' * 900 + "1" + "}" * 900
    record = Record()

    events = stage.run(Replies(thought(deep), says("done")), stage.request(record))

    assert [one.error for one in results(events)] == ["the input of Bash is not a JSON object"]
    record.add(*events)
    assert recall(record.events, find_secrets({})).unreadable == 0


@pytest.mark.parametrize("cost", ["NaN", "sNaN", "Infinity", "-Infinity", "-1", "1e30"])
def test_a_cost_that_is_no_amount_is_left_to_the_list_of_prices(
    stage: NativeStage, cost: str
) -> None:
    usage = RequestUsage(input_tokens=1_000_000, cost=Decimal(cost))
    answer = m.ModelResponse([m.TextPart("x")], usage=usage, model_name="gpt-5")
    record = Record()

    events = stage.run(Replies(answer), stage.request(record))

    (line,) = of_type(events, AssistantEvent)
    assert subtypes(events)[-1] == "complete"
    assert line.extra["cost_source"] == "genai-prices"
    assert line.usage.cost_microusd > 0
    record.add(*events)
    assert recall(record.events, find_secrets({})).last_answer is not None


@pytest.mark.filterwarnings(
    "ignore:Pydantic serializer warnings"
)  # of the client, which only warns
def test_what_a_server_counts_oddly_does_not_spoil_its_answer(stage: NativeStage) -> None:
    record, said = Record(), {"prompt_tokens": 10.5, "completion_tokens": 5, "total_tokens": 15}
    with chat_api(text("hi"), usage=said) as (url, _):
        events = stage.run(None, stage.chat_request(url, record))

    assert subtypes(events)[-1] == "complete"
    (line,) = of_type(events, AssistantEvent)
    assert (line.usage.input_tokens, line.usage.output_tokens) == (10, 5)
    record.add(*events)
    assert recall(record.events, find_secrets({})).unreadable == 0


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ({"name": "Bash", "arguments": ["x"]}, "the input of Bash is not a JSON object"),
        ({"name": "Bash", "arguments": 5}, "the input of Bash is not a JSON object"),
        ({"name": 5, "arguments": "{}"}, "there is no tool 5; "),
        ({"name": "Read", "arguments": '{"file_path": "\ud800"}'}, "there is no file"),
    ],
    ids=["a list", "a number", "a name", "half a character"],
)
def test_a_call_of_the_wrong_shape_is_told_to_the_model(
    stage: NativeStage, function: dict[str, Any], told: str
) -> None:
    record = Record()
    wanted = [{"index": 0, "id": 7, "type": "function", "function": function}]
    with chat_api([{"tool_calls": wanted}], text("oh")) as (url, _):
        events = stage.run(None, stage.chat_request(url, record))

    (result,) = results(events)
    assert result.error is not None
    assert result.error.startswith(told)
    assert subtypes(events)[-1] == "complete"
    record.add(*events)
    assert recall(record.events, find_secrets({})).unreadable == 0


@pytest.mark.parametrize(
    "delta",
    [
        {"tool_calls": "x"},
        {"tool_calls": [{"index": 0, "id": {"a": 1}, "type": "function", "function": "Bash"}]},
    ],
    ids=["calls", "a call"],
)
def test_what_a_client_cannot_make_anything_of_is_no_answer(
    stage: NativeStage, delta: dict[str, Any]
) -> None:
    with chat_api([delta]) as (url, _):
        events = stage.run(None, stage.chat_request(url, Record()))

    error = error_of(events)
    assert (error.code, (error.extra or {}).get("recoverable")) == ("malformed_answer", True)


def test_a_text_with_half_a_character_is_an_answer_like_any_other(stage: NativeStage) -> None:
    events = stage.run(Replies(says("so \ud83d far")))

    assert of_type(events, AssistantEvent)[-1].content == "so \ufffd far"
    assert subtypes(events)[-1] == "complete"


class Halved(Read, frozen=True, kw_only=True):
    """Answers as a server of tools may, whose texts come as JSON."""

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        return ToolOutcome(result="a \ud83d b")


def test_half_a_character_in_a_result_is_told_to_the_model(stage: NativeStage) -> None:
    with chat_api(call("Read", "{}"), text("oh")) as (url, asked):
        request = stage.chat_request(url)
        agent = replace(request.agent, permission_mode="bypassPermissions")
        events = stage.run(None, replace(request, agent=agent), tools=(Halved(),))

    assert subtypes(events)[-1] == "complete"
    assert asked[1]["messages"][-1]["content"] == "a \ufffd b"


def old_lines(answer: m.ModelMessage) -> list[Event]:
    """The lines as they were written without being read first."""
    return list(encode(answer, turn=1).lines)


def test_a_record_that_holds_such_an_answer_is_gone_on_with(stage: NativeStage) -> None:
    record, told = Record(), ToolResultEvent(tool_use_id="c", result="ok", index=0, end=True)
    record.add(*old_lines(thought(nested(220))), told)
    model = Replies(says("done"))

    events = stage.run(model, stage.request(record, job_turns=1))

    assert subtypes(events)[-1] == "complete"
    said = [part for one in model.conversations[0] for part in one.parts]
    assert [getattr(part, "content", None) for part in said] == ["go", "hm", "I will.", None, "ok"]
    warnings = [event for event in of_type(events, SystemEvent) if event.subtype == "warning"]
    assert Warned(code="unreadable_message") in [payload_of(event) for event in warnings]


@pytest.mark.parametrize(
    "message",
    [
        m.ModelResponse([m.NativeToolReturnPart("w", nested(220), "c")]),
        m.ModelRequest([m.UserPromptPart("a"), m.CompactionPart("x", metadata=nested(220))]),
        m.ModelResponse([], usage=RequestUsage(cost=Decimal("NaN"))),
    ],
    ids=["no named field", "a request", "nothing"],
)
def test_whatever_is_left_of_such_a_message_there_is_something_to_go_on_with(
    message: m.ModelMessage,
) -> None:
    record = Record()
    record.add(*old_lines(message), *old_lines(says("then")))

    conversation = recall(record.events, find_secrets({}))

    assert conversation.unreadable == 1
    assert all(one.parts for one in conversation.messages)
    m.ModelMessagesTypeAdapter.validate_json(
        m.ModelMessagesTypeAdapter.dump_json(conversation.messages)
    )


HOSTILE: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        -1,
        0.5,
        2**70,
        10**400,
        float("nan"),
        float("inf"),
        "",
        "\ud800",
        b"\xff",
        Decimal("NaN"),
    ]
) | st.builds(nested, st.sampled_from([1, 220, 300]))


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_mended_is_read_again_or_refused(data: st.DataObject) -> None:
    """Every field of an answer may hold anything: what has lines can be gone on with."""
    made: dict[str, Any] = {
        "model_name": data.draw(st.just("m") | HOSTILE),
        "finish_reason": data.draw(st.none() | HOSTILE),
        "timestamp": data.draw(st.just(m.ModelResponse([]).timestamp) | HOSTILE),
        "provider_details": data.draw(st.none() | HOSTILE),
    }
    usage = RequestUsage()
    for name in ("input_tokens", "output_tokens", "cost", "details", "audio_seconds"):
        setattr(usage, name, data.draw(HOSTILE))
    drawn = iter([data.draw(HOSTILE) for _ in range(7)])
    parts: list[Any] = [
        m.TextPart(next(drawn), id=next(drawn)),
        m.ThinkingPart(next(drawn), signature=next(drawn)),
        m.ToolCallPart(next(drawn), next(drawn), next(drawn)),
    ]
    wanted = parts[data.draw(st.integers(0, 2)) :]
    mended = repair_answer(m.ModelResponse(wanted, usage=usage, **made))
    only_usage = m.ModelMessagesTypeAdapter.dump_json([m.ModelResponse([], usage=mended.usage)])
    m.ModelMessagesTypeAdapter.validate_json(only_usage)

    try:
        lines = encode(mended, turn=1).lines
        read_back(lines)
    except (ValueError, RecursionError, InvalidValueError):
        return  # and so it is not recorded
    record = Record()
    record.add(*lines)
    assert recall(record.events, find_secrets({})).unreadable == 0


def test_a_call_is_still_a_call_when_it_is_told_as_text() -> None:
    record = Record()
    record.add(*old_lines(thought(nested(220))))

    answer = recall(record.events, find_secrets({})).last_answer

    assert answer is not None
    assert [(one.tool_name, one.tool_call_id) for one in answer.tool_calls] == [("Bash", "c")]


def test_calls_are_understood_as_before() -> None:
    answer = m.ModelResponse([m.ToolCallPart("Bash", '{"command": "ls"}', "c")], usage=COUNTED)

    assert repair_answer(answer) is answer
