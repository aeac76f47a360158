"""Parsing expressions: what the language has, and the place of everything that it does not have."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.workflows.expressions.lexer import LONGEST
from nightherd.model.workflows.expressions.parser import DEEPEST, parse
from nightherd.model.workflows.expressions.tree import (
    Comparison,
    Literal,
    Logic,
    Membership,
    Minus,
    Mistake,
    Not,
    Path,
    Tree,
    paths_of,
)


def spelled(tree: Tree | Mistake) -> str:
    """An expression with every grouping written out."""
    match tree:
        case Literal(value):
            return repr(value) if isinstance(value, str) else json.dumps(value)
        case Path():
            return str(tree)
        case Minus():
            return f"-({spelled(tree.operand)})"
        case Not():
            return f"not({spelled(tree.operand)})"
        case Logic():
            return f" {tree.operator} ".join(f"({spelled(one)})" for one in tree.operands)
        case Comparison():
            return f"{spelled(tree.left)} {tree.operator} {spelled(tree.right)}"
        case Membership():
            negated = "not " if tree.is_negated else ""
            return f"{spelled(tree.element)} {negated}in {spelled(tree.container)}"
        case Mistake():
            raise AssertionError(tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("inputs.dry_run", "inputs.dry_run"),
        ("true", "true"),
        ("False", "false"),
        ("null", "null"),
        ("None", "null"),
        ("12", "12"),
        ("0.5", "0.5"),
        ("1e3", "1000.0"),
        ("-1", "-(1)"),
        ("'it\\'s'", '"it\'s"'),
        ('"\\u00e9\\n\\t\\\\"', "'é\\n\\t\\\\'"),
        ("a == 'x'", "a == 'x'"),
        ("a != b", "a != b"),
        ("a<1", "a < 1"),
        ("a >= -1", "a >= -(1)"),
        ("a in b", "a in b"),
        ("a not in b", "a not in b"),
        ("not a in b", "not(a in b)"),
        ("b.contains(a)", "a in b"),
        ("'abc'.contains('b')", "'b' in 'abc'"),
        ("a.b.contains(c.d)", "c.d in a.b"),
        ("a or b and not c", "(a) or ((b) and (not(c)))"),
        ("(a or b) and c", "((a) or (b)) and (c)"),
        ("a and b and c", "(a) and (b) and (c)"),
        ("trigger.payload['x-y'][0][-1].z", 'trigger.payload["x-y"][0][-1].z'),
        ("trigger.payload['plain']", "trigger.payload.plain"),
        ("phases.import.output", "phases.import.output"),
        ("trigger.payload.from.class", "trigger.payload.from.class"),
        ("trigger.payload.true", "trigger.payload.true"),
        ("trigger.payload.contains", "trigger.payload.contains"),
        ("  a\n  and\tb ", "(a) and (b)"),
        ("'a#b' == a", "'a#b' == a"),
        ("match == type", "match == type"),
    ],
)
def test_the_language_has_paths_comparisons_conditions_and_literals(
    text: str, expected: str
) -> None:
    assert spelled(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "start", "width", "message"),
    [
        ("", 0, 1, "the expression is empty"),
        (" \n", 0, 1, "the expression is empty"),
        ("a + 1", 2, 1, "unexpected '+'"),
        ("a && b", 2, 1, "unexpected '&'"),
        ("!a", 0, 1, "unexpected '!'"),
        ("a = 1", 2, 1, "unexpected '='"),
        ("a <> b", 2, 1, "unexpected '<'"),
        ("a # b", 2, 1, "unexpected '#'"),
        ("a; b", 1, 1, "unexpected ';'"),
        ("${a}", 0, 1, "unexpected '$'"),
        ("a in ['x', 'y']", 9, 1, "unexpected ','"),
        ("['x']", 0, 5, "this is not part of expressions"),
        ("...", 0, 3, "this is not part of expressions"),
        ("a.é", 2, 1, "unexpected 'é'"),
        ("ﬁx", 0, 1, "unexpected 'ﬁ'"),
        ("a if b else c", 2, 2, "'if' is not part of expressions"),
        ("a is null", 2, 2, "'is' is not part of expressions"),
        ("lambda", 0, 6, "'lambda' is not part of expressions"),
        ("[x for x in y]", 3, 3, "'for' is not part of expressions"),
        ("1 < a < 3", 0, 9, "comparisons cannot be chained"),
        ("a == b == c", 0, 11, "comparisons cannot be chained"),
        ("b and len(a)", 6, 6, "functions cannot be called"),
        ("a.upper()", 0, 9, "functions cannot be called"),
        ("a.contains()", 0, 12, ".contains() takes one value"),
        ("a.contains(b)(c)", 0, 16, "functions cannot be called"),
        ("b and a[c]", 8, 1, "an index is a text or a whole number"),
        ("a[1.5]", 2, 3, "an index is a text or a whole number"),
        ("a[true]", 2, 4, "an index is a text or a whole number"),
        ("true.x", 0, 4, "true has no fields"),
        ("b or 'a'.x", 5, 3, "a text or number has no fields"),
        ("(a == b).c", 1, 6, "only a name has fields"),
        ("'a' 'b'", 4, 1, "a text cannot follow another word directly"),
        ("f'{a}'", 1, 1, "a text cannot follow another word directly"),
        ("b'a'", 1, 1, "a text cannot follow another word directly"),
        ("a == 'x", 5, 1, "the quotes of this text do not end"),
        ("a == '\\d'", 6, 2, "unknown escape '\\d'"),
        ("'\\ud800'", 0, 8, "the text has half of a character"),
        ("a == 007", 5, 1, "not a number; write 12, 0.5 or 1e3"),
        ("a == 1or b", 5, 1, "not a number; write 12, 0.5 or 1e3"),
        ("a == 0x1f", 5, 1, "not a number; write 12, 0.5 or 1e3"),
        ("a == 1_000", 5, 1, "not a number; write 12, 0.5 or 1e3"),
        ("a == 1j", 5, 1, "not a number; write 12, 0.5 or 1e3"),
        ("a < 1e999", 4, 5, "the number is too large"),
        ("'" + "x" * LONGEST + "'", 0, 1, "an expression of 2,002 characters; at most 2,000"),
        ("not " * 60 + "a", 4 * DEEPEST, 41, "nested more than 50 levels deep"),
        ("a" + ".b" * 60, 0, 121, "more than 50 fields deep"),
    ],
)
def test_everything_else_is_a_mistake_with_its_place(
    text: str, start: int, width: int, message: str
) -> None:
    mistake = parse(text)

    assert isinstance(mistake, Mistake)
    assert (mistake.start, mistake.width, mistake.message) == (start, width, message)


@pytest.mark.parametrize(
    "text", ["a ==", "(a", "a)", "a b", "a.", "and", "-", "(" * 300, "a.b c.d"]
)
def test_a_broken_expression_is_one_mistake_inside_the_text(text: str) -> None:
    mistake = parse(text)

    assert isinstance(mistake, Mistake)
    assert 0 <= mistake.start < len(text)


@pytest.mark.parametrize(
    "text", ["-" * 1_999 + "1", "not " * 499 + "a", "(" * 999 + "a" + ")" * 999]
)
def test_deep_nesting_is_a_mistake_and_no_crash(text: str) -> None:
    assert isinstance(parse(text), Mistake)


def test_every_part_knows_its_place_behind_characters_of_several_bytes() -> None:
    text = "'é€😀' == a.b and 'ß' in c['ü'].import"
    tree = parse(text)
    assert not isinstance(tree, Mistake)

    paths = list(paths_of(tree))

    assert [text[path.start : path.end] for path in paths] == ["a.b", "c['ü'].import"]
    assert [[text[step.start : step.end] for step in path.steps] for path in paths] == [
        ["b"],
        ["'ü'", "import"],
    ]


SIGNS = "ab.'\"\\()[] 10-<>=é\n#{\x00\ud800"
WORDS = [" in ", " not ", " and ", " or ", "true", "contains(", "lambda", "import", "=="]
PIECES = st.sampled_from([*SIGNS, *WORDS])


@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=40))
def test_any_text_is_an_expression_or_a_mistake_inside_it(text: str) -> None:
    tree = parse(text)

    if isinstance(tree, Mistake):
        assert 0 <= tree.start <= max(len(text) - 1, 0)
    else:
        assert spelled(parse(text[tree.start : tree.end])) == spelled(tree)
        assert all(0 <= path.start < path.end <= len(text) for path in paths_of(tree))


def test_index_in_an_index_is_refused_at_any_depth() -> None:
    for depth in (1, 60, 199):
        mistake = parse("a[" * depth + "a[0]" + "]" * depth)
        assert isinstance(mistake, Mistake)


def test_index_may_be_negative_and_nothing_else_may_have_a_sign() -> None:
    assert spelled(parse("a[-1]")) == "a[-1]"
    for text in ("a[-'x']", "a[--1]", "a[true]", "a[-true]", "a[1.5]", "a[null]"):
        assert isinstance(parse(text), Mistake), text
