"""Schemas of outputs: what they may say, what expressions know by them, and which values match."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.workflows.conductor.run_records import parse_answer
from nightherd.model.workflows.expressions.types import (
    ANY,
    BOOLEAN,
    LIST,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    Type,
    list_of,
    object_of,
    one_of,
    optional,
)
from nightherd.model.workflows.json_schema import MOST_MISMATCHES, check_schema, mismatches, type_of

REVIEW = {
    "type": "object",
    "title": "Review",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether it may land."},
        "comments": {"type": "string", "maxLength": 5},
        "files": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "score": {"type": ["integer", "null"], "minimum": 0, "maximum": 10},
        "kind": {"type": "string", "enum": ["bug", "feature"]},
    },
    "required": ["approved", "files"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({}, ANY),
        ({"type": "string"}, TEXT),
        ({"type": "integer"}, NUMBER),
        ({"type": "boolean"}, BOOLEAN),
        ({"type": "null"}, NULL),
        ({"type": "object"}, OBJECT),
        ({"type": "array"}, LIST),
        ({"type": "array", "items": {"type": "number"}}, list_of(NUMBER)),
        ({"type": ["string", "null"]}, optional(TEXT)),
        ({"type": ["string", "number"]}, ANY),
        ({"type": ["integer", "number"]}, NUMBER),
        ({"enum": ["a", "b"]}, one_of("a", "b")),
        ({"enum": ["a", 1]}, ANY),
        (
            REVIEW,
            object_of(
                {
                    "approved": BOOLEAN,
                    "comments": optional(TEXT),
                    "files": list_of(TEXT),
                    "score": optional(NUMBER),
                    "kind": optional(one_of("bug", "feature")),
                }
            ),
        ),
    ],
)
def test_expressions_know_what_the_schema_says(schema: dict[str, Any], kind: Type) -> None:
    assert list(check_schema(schema)) == []
    assert type_of(schema) == kind


@pytest.mark.parametrize(
    ("schema", "path", "message"),
    [
        ("text", (), "a schema is a mapping, not a text"),
        ({"typ": "string"}, ("typ",), "'typ' is not supported in the schema of an output"),
        ({"oneOf": []}, ("oneOf",), "'oneOf' is not supported in the schema of an output"),
        ({"type": "text"}, ("type",), "a type is one of string, number, integer,"),
        ({"type": []}, ("type",), "a type is one of"),
        ({"type": [["string"]]}, ("type",), "a type is one of"),
        ({"type": {"a": 1}}, ("type",), "a type is one of"),
        ({"properties": []}, ("properties",), "'properties' is a mapping"),
        ({"properties": {"a": 1}}, ("properties", "a"), "a schema is a mapping, not a number"),
        ({"items": {"items": 1}}, ("items", "items"), "a schema is a mapping, not a number"),
        ({"required": "a"}, ("required",), "'required' is a list of names"),
        (
            {"properties": {"a": {}}, "required": ["a", "b"]},
            ("required", 1),
            "'b' is required and is not among the properties",
        ),
        ({"enum": []}, ("enum",), "'enum' is a list of values"),
        ({"additionalProperties": {}}, ("additionalProperties",), "'additionalProperties' is true"),
        ({"minimum": "1"}, ("minimum",), "'minimum' is a number"),
    ],
)
def test_a_schema_that_would_not_be_checked_whole_is_a_mistake(
    schema: Any, path: tuple[str | int, ...], message: str
) -> None:
    (mistake,) = check_schema(schema)

    assert mistake.path == path
    assert mistake.message.startswith(message)


def test_a_schema_is_not_nested_for_ever() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(2_000):
        schema = {"items": schema}

    assert [mistake.message for mistake in check_schema(schema)] == [
        "nested more than 20 levels deep"
    ]


@pytest.mark.parametrize(
    ("value", "reasons"),
    [
        ({"approved": True, "files": ["a"]}, []),
        ({"approved": True, "files": ["a"], "score": 3.0, "kind": "bug"}, []),
        ("yes", ["the output is a text, not object"]),
        ({"files": ["a"]}, ["the output has no 'approved'"]),
        ({"approved": 1, "files": ["a"]}, ["the output.approved is a number, not boolean"]),
        ({"approved": True, "files": [1]}, ["the output.files[0] is a number, not string"]),
        ({"approved": True, "files": []}, ["the output.files has a length of 0; at least 1"]),
        ({"approved": True, "files": ["a"], "score": 11}, ["the output.score is 11; at most 10"]),
        (
            {"approved": True, "files": ["a"], "score": 1.5},
            ["the output.score is a number, not integer or null"],
        ),
        ({"approved": True, "files": ["a"], "kind": "x"}, ["the output.kind is not one of bug,"]),
        ({"approved": True, "files": ["a"], "x": 1}, ["the output has 'x', which is not among"]),
        (
            {"approved": None, "files": ["a"], "comments": "too long"},
            [
                "the output.approved is null, not boolean",
                "the output.comments has a length of 8; at most 5",
            ],
        ),
    ],
)
def test_a_value_that_does_not_match_says_why(value: Any, reasons: list[str]) -> None:
    found = mismatches(REVIEW, value)

    assert len(found) == len(reasons)
    for reason, beginning in zip(found, reasons, strict=True):
        assert reason.startswith(beginning)


def test_the_reasons_are_not_endless() -> None:
    assert len(mismatches({"items": {"type": "string"}}, [1] * 10_000)) == MOST_MISMATCHES


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {},
            {"type": "string", "minLength": 1},
            {"type": "integer", "maximum": 1},
            {"type": ["number", "null"]},
            {"type": "boolean"},
            {"enum": ["a", 1, True, None]},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items, "maxItems": 1}, inner),
        st.builds(
            lambda a, b, closed: {
                "type": "object",
                "properties": {"a": a, "b": b},
                "required": ["a"],
                "additionalProperties": not closed,
            },
            inner,
            inner,
            st.booleans(),
        ),
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 2, 1.0, 1.5, "", "a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(SCHEMAS, VALUES)
def test_values_match_as_the_standard_says(schema: dict[str, Any], value: Any) -> None:
    assert list(check_schema(schema)) == []

    is_valid = jsonschema.Draft202012Validator(schema).is_valid(value)

    assert (mismatches(schema, value) == ()) is is_valid


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_an_answer_with_a_number_that_json_does_not_have_is_no_json(number: str) -> None:
    value, problem = parse_answer(f'{{"found": [1, {number}]}}')

    assert value is None
    assert problem is not None
    assert problem.startswith("the answer is not JSON: ")
