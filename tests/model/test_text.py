"""Text as it can be kept."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.model.text import shorten, whole_text, whole_value

ANY_TEXT = st.text(st.characters(), max_size=20)
HALVES = st.text(st.sampled_from("a\ud83d\udc2e\ufeff🐮"), max_size=12)


def _joined(halves: re.Match[str]) -> str:
    return chr(0x10000 + ((ord(halves[1]) - 0xD800) << 10) + ord(halves[2]) - 0xDC00)


@settings(max_examples=60)
@given(ANY_TEXT | HALVES)
def test_every_half_of_a_character_is_replaced_and_nothing_else_is_touched(text: str) -> None:
    paired = re.sub("([\ud800-\udbff])([\udc00-\udfff])", _joined, text)

    assert whole_text(text) == re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", paired)


def test_text_that_is_whole_is_the_very_same() -> None:
    text = "a cow: 🐮"

    assert whole_text(text) is text


def test_keys_that_differ_only_in_halves_stay_apart() -> None:
    value = {chr(0xD800): ["x\udfff", 1], chr(0xD801): None}

    assert whole_value(value) == {"\ufffd": ["x\ufffd", 1], "\ufffd\ufffd": None}


@settings(max_examples=30)
@given(ANY_TEXT, st.integers(1, 25))
def test_what_is_too_long_is_cut_to_exactly_what_fits(text: str, limit: int) -> None:
    short = shorten(text, limit)

    assert short == text if len(text) <= limit else len(short) == limit
    assert short.removesuffix("…") == text[: len(short.removesuffix("…"))]
