"""Live text: masked as it comes in, and recorded once when it is cut off."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import AssistantEvent, Event, ToolUseEvent, is_message
from nightherd.model.journal.live_text import (
    LivePart,
    TextDelta,
    cut_off_event,
    is_cut_off,
    unrecorded_texts,
)
from nightherd.model.secrets import knowing

SECRETS = knowing({"abcdef": "KEY", "abc": "SHORT", "efgh": "OTHER"})


def delta(text: str, *, at: int = 0, part: int = 1, after: int = 5) -> TextDelta:
    return TextDelta(epoch=1, after=after, part=part, at=at, text=text)


def said(seq: int, text: str, **more: Any) -> Event:
    return AssistantEvent(seq=seq, content=text, **more)


@given(st.lists(st.text(alphabet="abcdefghx", max_size=5), max_size=12))
def test_masked_pieces_are_the_beginning_of_the_masked_text(pieces: list[str]) -> None:
    part, whole = LivePart(1, 0, SECRETS), SECRETS.mask("".join(pieces))
    shown = ""
    for piece in pieces:
        shown += part.add(piece)
        assert whole.startswith(shown)

    assert shown + part.finish() == whole
    assert (part.text, part.length) == (whole, len(whole))


def test_a_secret_that_comes_in_pieces_is_never_shown() -> None:
    part = LivePart(1, 0, knowing({"tok-123456": "TOKEN"}))

    assert [part.add(piece) for piece in ("it is tok", "-1234", "56.", " Done")] == [
        "it is ",
        "",
        "[secret:TOKEN].",
        " Done",
    ]


def test_text_without_a_secret_in_sight_is_shown_at_once() -> None:
    part = LivePart(1, 0, knowing({"tok-123456": "TOKEN"}))

    assert part.add("hello") == "hello"


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ((), ["One", "Tw"]),
        ((said(5, "before"),), ["One", "Tw"]),
        ((said(6, "One"),), ["Tw"]),
        ((said(6, "One"), said(7, "Two", end=True)), []),
        ((said(6, "One\n\nTw", partial=True),), []),
        ((said(6, "other", end=True),), []),
        ((ToolUseEvent(seq=6, tool_name="Bash"),), []),
        ((said(6, "One", end=True, parent_tool_use_id="toolu_1"),), ["One", "Tw"]),
        ((AssistantEvent(seq=6),), ["One", "Tw"]),
    ],
)
def test_what_is_on_record_is_not_left(events: tuple[Event, ...], left: list[str]) -> None:
    deltas = [delta("On"), delta("e", at=2), delta("Tw", part=2), delta("e", at=2)]

    assert unrecorded_texts(deltas, events) == left


def test_the_line_of_a_cut_off_answer_is_no_history_and_no_turn() -> None:
    event = cut_off_event(["One", "", "Tw"])

    assert event is not None
    assert (event.content, event.partial, event.end) == ("One\n\nTw", True, False)
    assert is_cut_off(event)
    assert not is_message(event)
    assert Tally().add(event) == Tally()
    assert cut_off_event([""]) is None
