"""Short bodies: every long text is cut and can be fetched whole, wherever in an event it is."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import NotFoundError
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_journals import MemoryJournals
from nightherd.views.jobs.event_bodies import KEPT, TEXT_LIMIT, EventRow, read_body, short_event

JOB = JobId("job-2026-01-02-abc123")


def recorded(*events: Event) -> tuple[MemoryJournals, list[EventRow]]:
    journals = MemoryJournals(clock=FakeClock())
    journal = journals.open(JOB, epoch=1, execution=generate_execution_id(JOB, 1))
    for event in events:
        journal.append(event)
    lines = journals.read(JOB, load_blobs=False)
    return journals, [short_event(journals, JOB, line) for line in lines]


def field_of(url: str) -> str:
    parts = urlsplit(url)
    assert parts.path == f"/v1/jobs/{JOB}/events/1/body"
    return parse_qs(parts.query)["field"][0]


def fetched(journals: MemoryJournals, row: EventRow) -> dict[str, Any]:
    found = {}
    for cut in row["cut"]:
        assert cut["field"] == field_of(cut["url"])
        body = read_body(journals, JOB, 1, cut["field"])
        found[cut["field"]] = (
            body.data.decode() if body.kind == "text" else msgspec.json.decode(body.data)
        )
    return found


def test_short_event_is_as_its_line_says() -> None:
    _, (row,) = recorded(AssistantEvent(content="x" * TEXT_LIMIT, turn=3))

    assert row["content"] == "x" * TEXT_LIMIT
    assert row["turn"] == 3
    assert "cut" not in row


def test_long_text_is_cut_to_its_beginning() -> None:
    text = "é" * TEXT_LIMIT
    journals, (row,) = recorded(AssistantEvent(content=text, thinking="short"))

    assert row["content"] == "é" * (KEPT // 2)
    assert row["thinking"] == "short"
    assert [(cut["field"], cut["size"]) for cut in row["cut"]] == [("content", 2 * TEXT_LIMIT)]
    assert fetched(journals, row) == {"content": text}


def test_long_text_inside_a_value_is_cut_and_the_rest_stays() -> None:
    long = "line\n" * 3_000
    given = {"file_path": "a.py", "edits": [{"new": long}], "odd/~key": long}
    journals, (row,) = recorded(ToolUseEvent(tool_name="Edit", input=given))

    assert row["input"]["file_path"] == "a.py"
    assert row["input"]["edits"][0]["new"] == long[:KEPT]
    assert fetched(journals, row) == {"input/edits/0/new": long, "input/odd~1~0key": long}


def test_value_of_many_small_texts_is_left_out_as_a_whole() -> None:
    result = [{"line": number} for number in range(4_000)]
    journals, (row,) = recorded(ToolResultEvent(result=result, success=True))

    assert row["result"] is None
    assert [cut["field"] for cut in row["cut"]] == ["result"]
    assert fetched(journals, row) == {"result": result}


@pytest.mark.parametrize("result", ["x" * 100_000, ["y" * 100_000]])
def test_body_that_is_stored_beside_the_journal_has_a_reference(result: Any) -> None:
    journals, (row,) = recorded(ToolResultEvent(result=result))

    assert row.get("result") is None
    assert [cut["field"] for cut in row["cut"]] == ["result"]
    assert row["cut"][0]["size"] >= 100_000
    assert fetched(journals, row) == {"result": result}


def test_texts_of_errors_are_cut_too() -> None:
    journals, (row,) = recorded(ErrorEvent(message="m" * 9_000, stack="s" * 9_000))

    assert (len(str(row["message"])), len(row["stack"])) == (KEPT, KEPT)
    assert fetched(journals, row) == {"message": "m" * 9_000, "stack": "s" * 9_000}


def test_bytes_come_back_as_bytes() -> None:
    journals, (row,) = recorded(ToolResultEvent(result=b"\x89PNG"))

    body = read_body(journals, JOB, 1, row["cut"][0]["field"])

    assert (body.kind, body.data) == ("bytes", b"\x89PNG")


def test_full_output_is_a_body() -> None:
    journals = MemoryJournals(clock=FakeClock())
    journal = journals.open(JOB, epoch=1, execution=generate_execution_id(JOB, 1))
    output = journals.keep_output(["all of ", "it"])
    journal.append(ToolResultEvent(result="all ...", full_output=output))

    assert read_body(journals, JOB, 1, "full_output").data == b"all of it"


def test_whole_event_is_a_body() -> None:
    journals, _ = recorded(AssistantEvent(content="hello"))

    document = msgspec.json.decode(read_body(journals, JOB, 1, None).data)

    assert (document["seq"], document["content"]) == (1, "hello")


@pytest.mark.parametrize(
    ("seq", "field"),
    [(2, "content"), (1, "nothing"), (1, "content/0"), (1, ""), (1, "extra/a/9"), (1, "__class__")],
)
def test_field_that_is_not_there_is_not_found(seq: int, field: str) -> None:
    journals, _ = recorded(AssistantEvent(content="hello", extra={"a": [1]}))

    with pytest.raises(NotFoundError):
        read_body(journals, JOB, seq, field)


def test_note_of_a_provider_that_looks_like_ours_is_left_alone() -> None:
    journals, (row,) = recorded(AssistantEvent(content="hello", extra={"$journal": {"blobs": 3}}))

    assert row["extra"] == {"$journal": {"blobs": 3}}
    assert read_body(journals, JOB, 1, "extra").kind == "json"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    # Long ones are made of a few letters: generating them one by one is slow.
    | st.sampled_from(["a" * 9_000, "ß" * 5_000, "🐄" * 3_000]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_any_value_is_bounded_and_every_cut_can_be_fetched(value: Any) -> None:
    journals, (row,) = recorded(ToolUseEvent(tool_name="any", input=value))

    assert len(msgspec.json.encode(row)) < 64 * 1024
    for cut in row.get("cut", []):
        body = read_body(journals, JOB, 1, cut["field"])
        assert len(body.data) == cut["size"]
