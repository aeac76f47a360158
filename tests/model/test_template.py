"""Templates: run-time places are filled in once, everything else is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.text import render

VALUES = {"prompt": "P", "turn": "3", "repo": "a/b", "inputs.who-1": "me"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("${prompt} ${turn} ${repo} ${inputs.who-1}", "P 3 a/b me"),
        ("${prompt}${prompt}", "PP"),
        ("$prompt {prompt} $${prompt}", "$prompt {prompt} $P"),
        ("${HOME} ${prompts} ${inputs.} ${ prompt }", "${HOME} ${prompts} ${inputs.} ${ prompt }"),
        ("", ""),
    ],
)
def test_places_are_filled_and_nothing_else(template: str, text: str) -> None:
    assert render(template, VALUES) == text


@given(st.text())
def test_what_a_value_says_is_never_filled_in_itself(value: str) -> None:
    filled = render("<${prompt}>", {**VALUES, "prompt": "${turn}" + value})

    assert filled == "<${turn}" + value + ">"


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("${repo}", "${repo} is used but this job has no value for it"),
        ("${inputs.x}", "${inputs.x} is used but this job has no --input x=..."),
    ],
)
def test_a_place_without_a_value_is_an_error(template: str, error: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        render(template, {})

    assert refusal.value.message == error
