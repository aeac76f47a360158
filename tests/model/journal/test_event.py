"""Events: five types and a closed list of subtypes, each of which survives being written down."""

from __future__ import annotations

import types
from datetime import UTC, datetime
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    Line,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
    is_message,
    is_terminal,
    payload_of,
)
from nightherd.model.journal.system import PAYLOADS, Payload, SystemSubtype, ToolProgress, Warned
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.integers(-(2**63), 2**64 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
INSTANT = st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001 hypothesis adds the zone
    timezones=st.just(UTC),
)
PLAIN: dict[object, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: NUMBER,
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bytes: st.binary(max_size=20),
    datetime: INSTANT,
    type(None): st.none(),
    MicroUsd: st.integers(0, 10**15),
    Any: JSON,
    SystemSubtype: st.sampled_from(SystemSubtype),
    SuspendReason: st.sampled_from(SuspendReason),
}


def values_of(kind: object) -> st.SearchStrategy[Any]:
    """Any value of an annotated type."""
    if kind in PLAIN:
        return PLAIN[kind]
    arguments = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        return st.one_of([values_of(argument) for argument in arguments])
    if get_origin(kind) is list:
        return st.lists(values_of(arguments[0]), max_size=3)
    if get_origin(kind) is tuple:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if get_origin(kind) is dict:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    assert isinstance(kind, type)
    assert issubclass(kind, msgspec.Struct), f"no values known for {kind}"
    return structs_of(kind)


def structs_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Any value of a struct, every field of it."""
    fields = {found.name: values_of(found.type) for found in msgspec.structs.fields(kind)}
    return st.builds(kind, **fields)


EVENT_TYPES: list[type[Line]] = list(get_args(Event))
every_type = pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
every_subtype = pytest.mark.parametrize("subtype", SystemSubtype)


def test_there_are_five_types_by_the_names_of_the_format() -> None:
    tags = {kind.__struct_config__.tag for kind in EVENT_TYPES}

    assert tags == {"system", "assistant", "tool_use", "tool_result", "error"}
    assert {kind.__struct_config__.tag_field for kind in EVENT_TYPES} == {"type"}


@every_type
@given(data=st.data())
def test_an_event_written_and_read_is_the_same_event(kind: type[Line], data: st.DataObject) -> None:
    event = data.draw(structs_of(kind))

    line = msgspec.json.encode(event)

    assert b"\n" not in line
    assert msgspec.json.decode(line, type=Event) == event


def test_a_type_or_subtype_that_is_not_in_the_list_is_not_an_event() -> None:
    for line in (b'{"type":"result"}', b'{"type":"system","subtype":"mystery"}', b"{}", b"null"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(line, type=Event)


def test_the_documented_lines_are_events() -> None:
    lines = {
        b'{"type":"system","subtype":"init","timestamp":"2024-01-19T09:00:00Z"}': SystemEvent,
        b'{"type":"assistant","content":"I read","partial":false}': AssistantEvent,
        b'{"type":"tool_use","tool_name":"Bash","tool_use_id":"t1","input":"ls"}': ToolUseEvent,
        b'{"type":"tool_result","tool_use_id":"t1","result":"x","success":true,"error":null}': (
            ToolResultEvent
        ),
        b'{"type":"error","message":"broke","code":"X","stack":"at y"}': ErrorEvent,
    }

    for line, kind in lines.items():
        assert isinstance(msgspec.json.decode(line, type=Event), kind)


@every_subtype
def test_every_subtype_has_a_payload_of_its_own(subtype: SystemSubtype) -> None:
    assert PAYLOADS[subtype].subtype is subtype
    assert len(set(PAYLOADS.values())) == len(SystemSubtype)


@every_subtype
@settings(max_examples=25)
@given(data=st.data())
def test_a_payload_described_and_read_back_is_the_same(
    subtype: SystemSubtype, data: st.DataObject
) -> None:
    payload = data.draw(structs_of(PAYLOADS[subtype]))
    content, turn = data.draw(st.none() | TEXT), data.draw(st.none() | NUMBER)

    event = describe(payload, content, turn=turn)

    assert (event.subtype, event.content, event.turn) == (subtype, content, turn)
    assert payload_of(event) == payload
    read = msgspec.json.decode(msgspec.json.encode(event), type=Event)
    assert isinstance(read, SystemEvent)
    assert payload_of(read) == payload


def test_an_extra_that_does_not_fit_its_subtype_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="system/warning"):
        payload_of(SystemEvent(subtype=SystemSubtype.WARNING, extra={"code": 7}))
    with pytest.raises(InvalidValueError, match="system/checkpoint"):
        payload_of(SystemEvent(subtype=SystemSubtype.CHECKPOINT))


def test_what_a_later_version_adds_to_a_payload_does_not_hide_the_rest() -> None:
    event = SystemEvent(subtype=SystemSubtype.WARNING, extra={"code": "x", "added_later": 1})

    assert payload_of(event) == Warned(code="x")


def test_a_payload_that_says_nothing_takes_no_room() -> None:
    assert describe(ToolProgress()).extra is None


@every_subtype
def test_only_an_end_is_terminal_and_only_user_input_is_a_message(subtype: SystemSubtype) -> None:
    event = SystemEvent(subtype=subtype)

    assert is_terminal(event) == (subtype.value in {"end", "complete", "session_end"})
    assert is_message(event) == (subtype.value == "user_input")


@pytest.mark.parametrize(
    ("event", "message", "terminal"),
    [
        (AssistantEvent(content="x"), True, False),
        (AssistantEvent(content="x", partial=False), True, False),
        (AssistantEvent(content="x", partial=True), False, False),
        (ToolUseEvent(tool_name="Bash"), True, False),
        (ToolResultEvent(result="x"), True, False),
        (ErrorEvent(message="x"), False, True),
    ],
)
def test_what_is_said_is_a_message_and_an_error_is_terminal(
    event: Event, message: bool, terminal: bool
) -> None:
    assert is_message(event) is message
    assert is_terminal(event) is terminal


@given(structs_of(Usage))
def test_what_was_not_used_is_not_written(usage: Usage) -> None:
    written = msgspec.to_builtins(usage)

    assert all(written.values())
    assert msgspec.convert(written, Usage) == usage


def test_payloads_name_their_subtype_outside_of_what_is_written() -> None:
    for payload in PAYLOADS.values():
        assert issubclass(payload, Payload)
        assert "subtype" not in payload.__struct_fields__
