"""Evaluating expressions: values, order of evaluation, and errors that nothing absorbs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nightherd.model.workflows.expressions.checker import check_expression
from nightherd.model.workflows.expressions.evaluate import (
    EvaluationError,
    Scope,
    equal,
    evaluate,
    evaluate_condition,
)
from nightherd.model.workflows.expressions.parser import parse
from nightherd.model.workflows.expressions.tree import Mistake
from nightherd.model.workflows.expressions.types import (
    ANY,
    BOOLEAN,
    NUMBER,
    TEXT,
    Names,
    list_of,
    namespace_of,
    object_of,
    optional,
)

PAYLOAD = {
    "title": "Fix é",
    "n": 3,
    "half": 0.5,
    "draft": False,
    "gone": None,
    "labels": ["bug", 1, None, {"a": [1]}],
    "from": {"name": "x"},
    "x-y": 1,
}
SCOPE = Scope(
    names=Names(
        types={
            "trigger": namespace_of({"payload": ANY}),
            "review": optional(object_of({"ok": BOOLEAN, "note": optional(TEXT)})),
            "files": list_of(object_of({"size": optional(NUMBER)})),
        }
    ),
    values={
        "trigger": {"payload": PAYLOAD},
        "review": {"ok": True},
        "files": [{"size": 3}, {}],
    },
)


def value(text: str, scope: Scope = SCOPE) -> Any:
    tree = parse(text)
    assert not isinstance(tree, Mistake), tree
    return evaluate(tree, scope)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trigger.payload.title", "Fix é"),
        ("trigger.payload['x-y']", 1),
        ("trigger.payload.from.name", "x"),
        ("trigger.payload.labels[0]", "bug"),
        ("trigger.payload.labels[-1].a", [1]),
        ("-trigger.payload.half", -0.5),
        ("trigger.payload.n == 3", True),
        ("trigger.payload.n == 3.0", True),
        ("trigger.payload.n == '3'", False),
        ("trigger.payload.n != 3", False),
        ("trigger.payload.gone == null", True),
        ("trigger.payload.title == null", False),
        ("trigger.payload.draft == false", True),
        ("trigger.payload.draft == 0", False),
        ("trigger.payload.n >= 3 and trigger.payload.n < 4", True),
        ("trigger.payload.title < 'G'", True),
        ("'bug' in trigger.payload.labels", True),
        ("1 in trigger.payload.labels", True),
        ("true in trigger.payload.labels", False),
        ("null in trigger.payload.labels", True),
        ("'Fix' in trigger.payload.title", True),
        ("'fix' not in trigger.payload.title", True),
        ("trigger.payload.contains('n')", True),
        ("'nope' in trigger.payload", False),
        ("not trigger.payload.draft", True),
        ("review.ok", True),
        ("review.note", None),
        ("files[0].size", 3),
        ("files[1].size == null", True),
    ],
)
def test_an_expression_has_the_value_that_it_says(text: str, expected: Any) -> None:
    found = value(text)

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "start", "message"),
    [
        ("trigger.payload.nope", 16, "trigger.payload has no field 'nope'"),
        ("trigger.payload.nope == null", 16, "trigger.payload has no field 'nope'"),
        ("trigger.payload.gone.x", 21, "trigger.payload.gone is null and has no fields"),
        ("trigger.payload.title.x", 22, "trigger.payload.title is a text and has no fields"),
        ("trigger.payload.n[0]", 18, "trigger.payload.n is a number and has no fields"),
        ("trigger.payload.labels[9]", 23, "trigger.payload.labels has 4 items and no [9]"),
        ("trigger.payload.labels[-5]", 23, "trigger.payload.labels has 4 items and no [-5]"),
        ("trigger.payload.labels.x", 23, "trigger.payload.labels is a list and has no 'x'"),
        ("trigger.payload[0]", 16, "trigger.payload is an object and has no 0"),
        ("trigger.payload.gone < 1", 0, "'<' cannot order null and a number"),
        ("trigger.payload.gone < 1 or true", 0, "'<' cannot order null and a number"),
        ("trigger.payload.title > 1", 0, "'>' cannot order a text and a number"),
        ("trigger.payload.draft < 1", 0, "'<' cannot order false and a number"),
        ("trigger.payload.n and true", 0, "a condition is true or false; this is a number"),
        ("true and trigger.payload.title", 9, "a condition is true or false; this is a text"),
        ("not trigger.payload.gone", 4, "a condition is true or false; this is null"),
        ("-trigger.payload.title", 1, "'-' takes a number, not a text"),
        ("1 in trigger.payload.title", 0, "a text contains texts, not a number"),
        (
            "1 in trigger.payload.n",
            5,
            "texts, lists and objects contain something; this is a number",
        ),
        (
            "'x' in trigger.payload.gone",
            7,
            "texts, lists and objects contain something; this is null",
        ),
    ],
)
def test_what_has_no_value_is_an_error_and_never_false(text: str, start: int, message: str) -> None:
    found = value(text)

    assert isinstance(found, EvaluationError)
    assert (found.start, found.message) == (start, message)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true or trigger.payload.nope", True),
        ("false and trigger.payload.nope", False),
        ("'nope' in trigger.payload and trigger.payload.nope == 1", False),
        ("trigger.payload.gone == null or trigger.payload.gone.x", True),
    ],
)
def test_what_is_not_reached_is_not_evaluated(text: str, expected: bool) -> None:
    assert value(text) is expected


def test_fields_of_an_output_that_is_null_are_an_error() -> None:
    scope = Scope(names=SCOPE.names, values={**SCOPE.values, "review": None})

    assert value("review == null", scope) is True
    assert value("review.ok", scope) == EvaluationError(
        message="review is null and has no fields", start=7, end=9
    )


def test_a_condition_that_is_no_condition_is_an_error() -> None:
    tree = parse("trigger.payload.n")
    assert not isinstance(tree, Mistake)

    found = evaluate_condition(tree, SCOPE)

    assert isinstance(found, EvaluationError)
    assert found.message == "a condition is true or false; this is a number"


def test_values_that_are_nested_too_deeply_are_an_error_and_no_crash() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    scope = Scope(names=SCOPE.names, values={"trigger": {"payload": {"a": deep, "b": [deep]}}})

    found = value("trigger.payload.a == trigger.payload.b", scope)

    assert isinstance(found, EvaluationError)
    assert "nested too deeply" in found.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner),
    max_leaves=6,
)


@given(JSON, JSON)
def test_equality_is_that_of_json_where_true_is_not_one(left: Any, right: Any) -> None:
    assert equal(left, left)
    assert equal(left, right) is equal(right, left)
    if equal(left, right):
        assert left == right
        assert str(True) not in str(left) or str(True) in str(right)


VALUES = {"n": 2, "half": 0.5, "zero": 0, "t": "b", "word": "abc", "yes": True, "no": False}
KNOWN = Names(
    types={
        "v": namespace_of(
            {
                name: BOOLEAN if isinstance(one, bool) else TEXT if isinstance(one, str) else NUMBER
                for name, one in VALUES.items()
            }
        )
    }
)
LEAVES = st.sampled_from(
    [f"v.{name}" for name in VALUES] + ["true", "false", "1", "2", "0.5", "'a'", "'b'", "null"]
)


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"])
    return st.one_of(
        st.builds(lambda a, op, b: f"({a}) {op} ({b})", inner, operators, inner),
        st.builds(lambda a: f"not ({a})", inner),
        st.builds(lambda a: f"-({a})", inner),
    )


@given(st.recursive(LEAVES, joined, max_leaves=8))
def test_what_the_checker_accepts_has_a_value_and_it_is_the_one_of_python(text: str) -> None:
    checked = check_expression(text, KNOWN)
    assume(not checked.mistakes and checked.tree is not None)
    assert checked.tree is not None

    found = evaluate(checked.tree, Scope(names=KNOWN, values={"v": VALUES}))

    python = {"v": SimpleNamespace(**VALUES), "true": True, "false": False, "null": None}
    assert found == eval(text, {"__builtins__": {}}, python)
