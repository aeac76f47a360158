"""One event, one line, and back: whatever is in it, and whatever a file may hold instead."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.errors import JournalError
from nightherd.journal.codec import decode_line, encode_line
from nightherd.journal.files import JournalFiles
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.usage import Usage
from nightherd.ports import BadLine
from nightherd.testing.contracts.journal import JOB, begin, say, texts
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_journals import MemoryJournals

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
STAMP = {"v": 1, "seq": 1, "epoch": 1, "timestamp": AT, "execution": "job-2026-01-02-abc123.1"}

words = st.text()  # no surrogates: what they become is a matter of its own
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
extras = st.none() | st.dictionaries(words | st.just("$journal"), values, max_size=4)
numbers = st.none() | st.integers(0, 2**62)
stamps = st.fixed_dictionaries(
    {
        "turn": numbers,
        "uuid": st.none() | words,
        "parent_tool_use_id": st.none() | words,
        "extra": extras,
    }
)
places = st.fixed_dictionaries({"message": numbers, "index": numbers, "end": st.booleans()})


@st.composite
def events(draw: st.DrawFn) -> Event:
    stamp: dict[str, Any] = draw(stamps)
    place: dict[str, Any] = draw(places)
    text = draw(st.none() | words)
    match draw(st.sampled_from(["system", "assistant", "tool_use", "tool_result", "error"])):
        case "system":
            subtype = draw(st.sampled_from(SystemSubtype))
            return SystemEvent(subtype=subtype, content=text, **place, **stamp)
        case "assistant":
            usage = Usage(input_tokens=draw(st.integers(0, 10**9)))
            return AssistantEvent(content=text, thinking=text, usage=usage, **place, **stamp)
        case "tool_use":
            return ToolUseEvent(tool_name=draw(words), input=draw(values), **place, **stamp)
        case "tool_result":
            return ToolResultEvent(result=draw(values), error=text, **place, **stamp)
        case _:
            return ErrorEvent(message=draw(words), stack=text, **stamp)


@settings(max_examples=150, deadline=None)
@given(event=events())
def test_any_event_survives_its_line(event: Event) -> None:
    stamped = msgspec.structs.replace(event, **STAMP)

    line = encode_line(stamped)

    assert line.count(b"\n") == 1
    assert decode_line(line, 0) == stamped
    assert json.loads(line)["type"] in {"system", "assistant", "tool_use", "tool_result", "error"}


@settings(max_examples=150, deadline=None)
@given(event=events())
def test_any_extra_dumps_byte_equal_after_a_journal_had_it(event: Event) -> None:
    journals = MemoryJournals(clock=FakeClock())

    begin(journals).append(event)
    [read] = journals.read(JOB)

    def dump(extra: object) -> bytes:
        return msgspec.json.encode(extra, order="sorted")

    assert dump(read.extra) == dump(event.extra)
    assert msgspec.structs.replace(event, **dict.fromkeys(STAMP)) == msgspec.structs.replace(
        read, **dict.fromkeys(STAMP)
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "truncated"),
        (b"\x00\x00\x00\x00", "malformed"),
        (b'{"type":"assistant","v":1,"seq":1', "truncated"),
        (b'{"type":"assistant","v":1,"seq":1,"content":"\xff\xfe"}', "utf-8"),
        (b'{"type":"assistant","v":1,"seq":1,"content":"\\ud800"}', "truncated"),
        (b'{"type":"assistant","v":1,"seq":1}{"type":"assistant","v":1,"seq":2}', "trailing"),
        (b'{"type":"dream","v":1,"seq":1}', "dream"),
        (b'{"type":"system","subtype":"dream","v":1,"seq":1}', "dream"),
        (b'{"type":"tool_use","v":1,"seq":1}', "tool_name"),
        (b'{"type":"assistant","v":1,"seq":"1"}', "seq"),
        (b'{"type":"assistant","content":"no stamp"}', "without v, seq or epoch"),
        (b'{"type":"assistant","v":1,"seq":-4}', "without v, seq or epoch"),
        (b'["not", "an", "object"]', "object"),
        (b'{"type":"assistant","v":1,"seq":1,"extra":{"a":' + b"[" * 99_999, "recursion"),
    ],
)
def test_line_that_is_no_event_is_a_value_that_says_why(line: bytes, reason: str) -> None:
    bad = decode_line(line, 77)

    assert isinstance(bad, BadLine)
    assert (bad.offset, bad.length) == (77, len(line))
    assert reason in bad.reason


def test_fields_of_a_newer_minor_are_passed_over() -> None:
    event = decode_line(
        b'{"type":"assistant","v":1,"seq":3,"epoch":1,"mood":{"new":1},"content":"x"}', 0
    )

    assert event == AssistantEvent(v=1, seq=3, epoch=1, content="x")


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"assistant","v":2,"seq":1,"epoch":1,"content":"readable all the same"}',
        b'{"type":"telepathy","v":2,"seq":1,"epoch":1}',
    ],
)
def test_line_of_a_newer_format_is_an_error_that_names_the_version(line: bytes) -> None:
    with pytest.raises(JournalError, match="version 2") as caught:
        decode_line(line, 12)

    assert caught.value.code == "version"
    assert caught.value.hint is not None


def test_event_nested_as_deep_as_could_be_written_can_be_read_from_deeper_down() -> None:
    nested: list[Any] = []
    for _ in range(600):
        nested = [nested]
    line = encode_line(AssistantEvent(v=1, seq=1, extra={"deep": nested}))

    def deeper(levels: int) -> Event | BadLine:
        return deeper(levels - 1) if levels else decode_line(line, 0)

    assert not isinstance(deeper(sys.getrecursionlimit() // 2), BadLine)


@pytest.mark.parametrize("value", [object(), {1, 2}.__iter__(), 1j])
def test_value_that_json_has_no_word_for_is_refused(value: object) -> None:
    with pytest.raises(JournalError, match="cannot be written as JSON"):
        encode_line(ToolResultEvent(result=value))


def test_keys_that_differ_only_in_surrogates_stay_apart() -> None:
    journals = MemoryJournals(clock=FakeClock())

    event = begin(journals).append(
        ToolUseEvent(
            tool_name="x", input={chr(0xD800): 1, chr(0xD801): [chr(0xDFFF)], "plain": (1, 2)}
        )
    )

    assert isinstance(event, ToolUseEvent)
    assert event.input == {"\ufffd": 1, "\ufffd\ufffd": ["\ufffd"], "plain": [1, 2]}
    assert event.extra == {"$journal": {"replaced": ["input"]}}


@pytest.mark.parametrize("size_mb", [1, 50])
def test_line_of_many_megabytes_is_read_whole(tmp_path: Path, size_mb: int) -> None:
    journals = JournalFiles(tmp_path, tmp_path / "blobs", clock=FakeClock())
    journal = begin(journals)
    journal.append(say("before"))
    huge = AssistantEvent(content="huge", extra={"kept": "k" * size_mb * 1_000_000})

    written = journal.append(huge)
    journal.append(say("after"))

    assert texts(journals.read(JOB)) == ["before", "huge", "after"]
    assert journals.last(JOB, 2)[0] == written
    assert texts(journals.read(JOB, after=2)) == ["after"]
    assert begin(journals, epoch=2).last_seq == 3


def test_line_longer_than_allowed_is_reported_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("codec", "lines", "place", "writer"):
        monkeypatch.setattr(f"nightherd.journal.{module}.LINE_LIMIT", 100_000)
    journals = JournalFiles(tmp_path, tmp_path / "blobs", clock=FakeClock())
    journal = begin(journals)
    journal.append(say("before"))
    offset = journals.path(JOB).stat().st_size
    with journals.path(JOB).open("ab") as file:
        file.write(b"g" * 300_000 + b"\n")

    with pytest.raises(JournalError, match="at most 100000") as caught:
        journal.append(AssistantEvent(extra={"kept": "k" * 100_000}))
    journal.append(say("after"))

    assert caught.value.code == "size"
    assert texts(journals.read(JOB)) == ["before", "after"]
    assert texts(journals.last(JOB, 9)) == ["before", "after"]
    [bad] = journals.examine(JOB).bad_lines
    assert (bad.offset, bad.length) == (offset, 300_001)
