"""JSON texts: what cannot be stored and written again is refused, with the reason."""

from __future__ import annotations

import json

import pytest

from nightherd.errors import InvalidValueError
from nightherd.model.json_text import DEEPEST, check_value, parse_json


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ('{"a": 1', "delimiter"),
        ("NaN", "JSON has no NaN"),
        ('{"a": [-Infinity]}', "JSON has no -Infinity"),
        ('{"a": 1e999}', "too large"),
        ("9" * 6000, "more than 1,000 digits"),
        ("[" * 3000 + "]" * 3000, f"more than {DEEPEST} levels"),
        ("[" * 100_000 + "]" * 100_000, f"more than {DEEPEST} levels"),
        ('{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1), f"more than {DEEPEST} levels"),
    ],
)
def test_what_cannot_be_stored_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidValueError, match=reason):
        parse_json(text)


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2.5, true, null, "x"]}', "9" * 40, "[" * DEEPEST + "]" * DEEPEST]
)
def test_json_is_read_as_it_is(text: str) -> None:
    assert parse_json(text) == json.loads(text)
    check_value(parse_json(text))


def test_half_of_a_character_becomes_a_replacement() -> None:
    value = parse_json('{"\\ud83d": ["cut \\ud83d", "\\ud83d\\ude00"]}')

    assert value == {"\ufffd": ["cut \ufffd", "😀"]}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([float("nan")], "JSON has no nan"),
        ({"a": ["\ud800"]}, "half of a character"),
        ({"\ud800": 1}, "half of a character"),
        ({1: 2}, "a name in an object is a text, not 1"),
        ([b"x"], "JSON has no bytes"),
    ],
)
def test_value_that_json_does_not_have_is_refused(value: object, reason: str) -> None:
    with pytest.raises(InvalidValueError, match=reason):
        check_value(value)
