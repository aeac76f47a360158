"""Search terms: plain text, whatever is in it; and snippets with the matches marked."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.index.search import EVENT_LIMIT, lacks_body, search_text
from nightherd.model.index.search_terms import (
    LONGEST,
    SNIPPET_LIMIT,
    Term,
    match_expression,
    parse_terms,
    snippet_of,
)
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Complete, SystemSubtype
from nightherd.testing.state_values import BEGINNING


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("green grass", [("green",), ("grass",)]),
        ('"green grass" hay', [("green", "grass"), ("hay",)]),
        ('say "green grass', [("say",), ("green", "grass")]),
        ("read_file()", [("read", "file")]),
        ("Mädchen ÉTÉ", [("madchen",), ("ete",)]),
        ("a AND (b OR c) NOT d", [("a",), ("and",), ("b",), ("or",), ("c",), ("not",), ("d",)]),
        ('body:x "" ** - ^y', [("body", "x"), ("y",)]),
    ],
)
def test_words_and_phrases_are_taken_as_they_are_written(
    text: str, terms: list[tuple[str, ...]]
) -> None:
    assert [term.words for term in parse_terms(text)] == terms


def test_a_star_makes_the_last_word_a_beginning() -> None:
    assert parse_terms('gra* "hay sta"* hay') == (
        Term(words=("gra",), is_prefix=True),
        Term(words=("hay", "sta"), is_prefix=True),
        Term(words=("hay",)),
    )


@pytest.mark.parametrize("text", ["", "   ", '"" * ---', "x" * (LONGEST + 1), "a " * 40])
def test_a_text_without_a_word_or_with_too_much_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_terms(text)


@given(st.text(max_size=100))
def test_nothing_but_quoted_words_reaches_the_database(text: str) -> None:
    try:
        expression = match_expression(parse_terms(text), "coder")
    except InvalidValueError:
        return
    outside = " ".join(expression.split('"')[::2])
    assert set(outside.replace("(", " ").replace(")", " ").split()) <= {
        "body",
        "agent",
        ":",
        "*",
        "AND",
    }
    assert all(part.replace(" ", "").isalnum() for part in expression.split('"')[1::2])


def test_a_snippet_is_around_the_first_match_on_one_line_with_the_matches_marked() -> None:
    text = "grazing " * 50 + "the\nGREEN\tgrass of home " + "and away " * 50
    found = snippet_of(text, parse_terms('"green grass" ho*'))

    assert len(found.text) <= SNIPPET_LIMIT
    assert [found.text[start:end] for start, end in found.ranges] == ["GREEN grass", "home"]


@given(st.text(max_size=400), st.text(max_size=30))
def test_ranges_are_in_the_snippet_in_order_and_apart(text: str, query: str) -> None:
    try:
        terms = parse_terms(query)
    except InvalidValueError:
        return
    found = snippet_of(text, terms)
    reached = 0
    for start, end in found.ranges:
        assert reached <= start < end <= len(found.text)
        reached = end


@pytest.mark.parametrize(
    ("event", "kind", "body"),
    [
        (SystemEvent(subtype=SystemSubtype.USER_INPUT, content="graze"), "prompt", "graze"),
        (AssistantEvent(content="moo"), "answer", "moo"),
        (
            ToolUseEvent(tool_name="Bash", input={"command": "ls", "n": 3}),
            "tool_input",
            "Bash\nls\n3",
        ),
        (ToolResultEvent(result=[{"type": "text", "text": "hay"}]), "tool_result", "text\nhay"),
        (ToolResultEvent(error="no hay", result="none"), "tool_result", "no hay\nnone"),
        (ErrorEvent(message="gate"), "error", "gate"),
        (describe(Complete(summary="all fed")), "summary", "all fed"),
    ],
)
def test_what_was_said_and_done_can_be_found(event: Event, kind: str, body: str) -> None:
    text = search_text(_stamped(event))
    assert text is not None
    assert (text.kind, text.body) == (kind, body)


@pytest.mark.parametrize(
    "event",
    [
        AssistantEvent(content="mo", partial=True),
        AssistantEvent(thinking="hm"),
        SystemEvent(subtype=SystemSubtype.TOOL_PROGRESS, content="still"),
        ToolResultEvent(result={"type": "image", "source": {"data": "aGF5"}}),
        ToolResultEvent(result="iVBORw0KGgo" * 1_000),
    ],
)
def test_streamed_pieces_thoughts_and_images_cannot(event: Event) -> None:
    assert search_text(_stamped(event)) is None


def test_of_a_long_text_the_beginning_and_the_end_can_be_found() -> None:
    text = search_text(_stamped(ToolResultEvent(result="begin " + "hay " * 20_000 + "end")))
    assert text is not None
    assert len(text.body) <= EVENT_LIMIT
    assert text.body.startswith("begin")
    assert text.body.endswith("end")


def test_only_an_event_without_its_text_is_read_again() -> None:
    assert lacks_body(SystemEvent(subtype=SystemSubtype.USER_INPUT))
    assert lacks_body(ToolResultEvent(tool_use_id="a"))
    assert not lacks_body(ToolResultEvent(tool_use_id="a", result=""))
    assert not lacks_body(AssistantEvent(thinking="hm"))


def _stamped(event: Event) -> Event:
    stamped: Event = msgspec.structs.replace(event, seq=7, timestamp=BEGINNING)
    return stamped
