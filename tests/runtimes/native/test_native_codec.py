"""Messages become lines and lines become messages, and not a byte of what pydantic-ai dumps is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai import messages as m

from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
    payload_of,
)
from nightherd.model.journal.system import Context
from nightherd.model.usage import Usage
from nightherd.runtimes.native.decode import decode
from nightherd.runtimes.native.encode import encode
from nightherd.wiring.stores import open_journals
from runtimes.native import messages as made
from runtimes.native.native_stage import EXECUTION, JOB

ADAPTER = m.ModelMessagesTypeAdapter
UNHURRIED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def through_the_journal(messages: list[m.ModelMessage]) -> list[Event]:
    """The lines of the messages as a reader of the journal gets them."""
    events: list[Event] = []
    for message in messages:
        encoded = encode(message, turn=1)
        events += [describe(constant) for constant in encoded.constants]
        events += encoded.lines
    decoder = msgspec.json.Decoder(Event)
    return [decoder.decode(msgspec.json.encode(event)) for event in events]


def dumps_alike(messages: list[m.ModelMessage]) -> bool:
    return ADAPTER.dump_json(decode(through_the_journal(messages))) == ADAPTER.dump_json(messages)


@given(made.conversations())
@UNHURRIED
def test_a_conversation_comes_back_byte_for_byte(messages: list[m.ModelMessage]) -> None:
    assert dumps_alike(messages)


@pytest.mark.parametrize("kind", made.REQUEST_PARTS)
def test_every_kind_of_part_of_a_request_comes_back(kind: str) -> None:
    @given(st.lists(made.REQUEST_PARTS[kind], min_size=1, max_size=3))
    @settings(UNHURRIED, max_examples=10)
    def check(parts: list[Any]) -> None:
        assert dumps_alike([m.ModelRequest(parts)])

    check()


@pytest.mark.parametrize("args", ["Infinity", '{"a": -Infinity}', "[NaN, 1]"])
def test_arguments_that_json_does_not_know_come_back(args: str) -> None:
    assert dumps_alike([m.ModelResponse([m.ToolCallPart("Read", args, "c1")])])


@pytest.mark.parametrize("depth", [150, 240])
def test_arguments_that_are_nested_deeply_come_back(depth: int) -> None:
    args: dict[str, Any] = {}
    for _ in range(depth):
        args = {"a": args}

    assert dumps_alike([m.ModelResponse([m.ToolCallPart("Read", args, "c1")])])


@pytest.mark.parametrize("kind", made.RESPONSE_PARTS)
def test_every_kind_of_part_of_an_answer_comes_back(kind: str) -> None:
    @given(st.lists(made.RESPONSE_PARTS[kind], min_size=1, max_size=3))
    @settings(UNHURRIED, max_examples=10)
    def check(parts: list[Any]) -> None:
        assert dumps_alike([m.ModelResponse(parts)])

    check()


def part_kinds(union: Any) -> set[str]:
    """The kinds of all members of one of pydantic-ai's unions of parts."""
    members = (get_args(member)[0] for member in get_args(get_args(union)[0]))
    kinds = (getattr(member, "__dataclass_fields__", {}).get("part_kind") for member in members)
    return {field.default for field in kinds if field is not None}


def test_no_kind_of_part_is_forgotten() -> None:
    assert part_kinds(m.ModelRequestPart) - {"retry-prompt"} == set(made.REQUEST_PARTS)
    assert part_kinds(m.ModelResponsePart) == set(made.RESPONSE_PARTS)


@pytest.mark.parametrize("tool_name", [None, "Bash"])
def test_a_part_that_was_given_up_comes_back_as_pydantic_ai_itself_reads_it(
    tool_name: str | None,
) -> None:
    request = made.old_retry(tool_name)

    loaded = ADAPTER.validate_json(ADAPTER.dump_json([request]))

    assert ADAPTER.dump_json(decode(through_the_journal([request]))) == ADAPTER.dump_json(loaded)


@pytest.mark.parametrize(
    ("name", "kind", "call"),
    [
        ("search_tools", "tool-search", '{"queries": ["files"]}'),
        ("load_capability", "capability-load", '{"id": "files"}'),
    ],
)
def test_typed_tool_parts_keep_their_type(name: str, kind: str, call: str) -> None:
    answer = m.ModelResponse([m.ToolCallPart(name, call, "c1", tool_kind=kind)])

    (back,) = decode(through_the_journal([answer]))

    assert type(back.parts[0]) is type(answer.parts[0])
    assert dumps_alike([answer])


def test_instructions_are_written_once_and_named_by_hash() -> None:
    requests: list[m.ModelMessage] = [
        m.ModelRequest([m.UserPromptPart(text)], instructions="be brief") for text in ("a", "b")
    ]

    events = through_the_journal(requests)

    contexts = [
        payload
        for event in events
        if isinstance(event, SystemEvent) and isinstance(payload := payload_of(event), Context)
    ]
    assert {(context.kind, context.body) for context in contexts} == {("instructions", "be brief")}
    assert len({context.hash for context in contexts}) == 1
    lines = [event for event in events if isinstance(event, SystemEvent) and event.content]
    assert all("be brief" not in str(line.extra) for line in lines)


def test_lines_say_what_a_reader_wants_to_know() -> None:
    answer = m.ModelResponse(
        [
            m.ThinkingPart("hm", signature="s", provider_name="p"),
            m.TextPart("Reading."),
            m.ToolCallPart("Read", '{"file_path": "a.txt"}', "c1"),
        ]
    )
    result = m.ModelRequest([m.ToolReturnPart("Read", "no such file", "c1", outcome="failed")])

    thought, said, call = encode(answer, turn=3, usage=Usage(input_tokens=5)).lines
    (returned,) = encode(result, turn=3).lines

    assert isinstance(thought, AssistantEvent)
    assert thought.thinking == "hm"
    assert thought.usage == Usage(input_tokens=5)
    assert isinstance(said, AssistantEvent)
    assert (said.content, said.usage, said.extra) == ("Reading.", None, None)
    assert isinstance(call, ToolUseEvent)
    assert (call.tool_name, call.input) == ("Read", {"file_path": "a.txt"})
    assert [line.index for line in (thought, said, call)] == [0, 1, 2]
    assert [line.end for line in (thought, said, call)] == [False, False, True]
    assert isinstance(returned, ToolResultEvent)
    assert (returned.success, returned.error, returned.result) == (False, "no such file", None)
    assert {line.turn for line in (thought, said, call, returned)} == {3}


def test_usage_is_on_record_before_the_first_call_of_an_answer_without_words() -> None:
    answer = m.ModelResponse([m.ToolCallPart("Bash", {"command": "true"}, "c1")])

    first, call = encode(answer, usage=Usage(output_tokens=7)).lines

    assert isinstance(first, AssistantEvent)
    assert first.usage == Usage(output_tokens=7)
    assert isinstance(call, ToolUseEvent)
    assert (first.end, call.end) == (False, True)


def test_results_that_follow_each_other_are_one_request() -> None:
    request = m.ModelRequest([m.ToolReturnPart("Bash", str(n), f"c{n}") for n in range(3)])

    lines = encode(request).lines
    (back,) = decode(lines)

    assert [line.end for line in lines] == [True, True, True]
    assert len(back.parts) == 3


def test_a_message_that_pydantic_ai_cannot_dump_is_an_error() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        encode(m.ModelResponse([m.TextPart("\ud800")]))


def test_large_and_binary_bodies_come_back_from_a_real_journal(tmp_path: Path) -> None:
    large = "x" * 100_000
    messages: list[m.ModelMessage] = [
        m.ModelRequest(
            [m.UserPromptPart([large, m.BinaryContent(b"\0" * 99, media_type="image/png")])]
        ),
        m.ModelResponse(
            [
                m.ThinkingPart(large),
                m.TextPart(large),
                m.FilePart(m.BinaryContent(bytes(range(256)) * 400, media_type="image/png")),
                m.ToolCallPart("Write", {"file_path": "a", "content": large}, "c1"),
            ]
        ),
        m.ModelRequest([m.ToolReturnPart("Write", large, "c1")]),
    ]
    for name in ("jobs", "blobs"):
        (tmp_path / name).mkdir()
    journals = open_journals(tmp_path)
    journal = journals.open(JOB, epoch=1, execution=EXECUTION)
    for event in (line for message in messages for line in encode(message).lines):
        journal.append(event)
    journal.close()

    back = decode(journals.read(JOB))

    assert ADAPTER.dump_json(back) == ADAPTER.dump_json(messages)
    assert list((tmp_path / "blobs").iterdir())
