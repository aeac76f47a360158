"""Checking expressions: unknown names and impossible comparisons are found before anything runs, at their column."""

from __future__ import annotations

import pytest

from nightherd.model.workflows.expressions.checker import check_expression
from nightherd.model.workflows.expressions.types import (
    ANY,
    BOOLEAN,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    Kind,
    Names,
    Type,
    list_of,
    namespace_of,
    object_of,
    one_of,
    optional,
)

REVIEW = object_of({"approved": BOOLEAN, "comments": TEXT, "score": optional(NUMBER)})
NAMES = Names(
    types={
        "inputs": namespace_of(
            {
                "title": TEXT,
                "count": NUMBER,
                "dry_run": BOOLEAN,
                "note": optional(TEXT),
                "limit": optional(NUMBER),
                "flag": optional(BOOLEAN),
                "labels": list_of(TEXT),
                "things": LIST,
                "settings": OBJECT,
            }
        ),
        "trigger": namespace_of({"type": one_of("manual", "webhook"), "payload": ANY}),
        "phases": namespace_of(
            {
                "review": namespace_of(
                    {"status": one_of("succeeded", "failed"), "output": optional(REVIEW)}
                )
            }
        ),
    },
    absent={
        ("item",): "'item' exists only inside for_each",
        ("phases", "later"): "phase 'later' may not have ended",
    },
)


def mistakes(text: str, wanted: Kind | None = None) -> list[tuple[int, int, str]]:
    checked = check_expression(text, NAMES, wanted=wanted)
    return [(one.start, one.width, one.message) for one in checked.mistakes]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("inputs.title", TEXT),
        ("inputs.note", optional(TEXT)),
        ("inputs.labels[0]", TEXT),
        ("inputs.things[0].anything", ANY),
        ("inputs.settings.deep.er", ANY),
        ("inputs.settings['x-y']", ANY),
        ("trigger.payload.issue.number", ANY),
        ("phases.review.output", optional(REVIEW)),
        ("phases.review.output.approved", BOOLEAN),
        ("phases['review'].output.score", optional(NUMBER)),
        ("-inputs.count", NUMBER),
        ("-inputs.limit", NUMBER),
        ("inputs.title == 'x'", BOOLEAN),
        ("inputs.note == null", BOOLEAN),
        ("inputs.title == null", BOOLEAN),
        ("inputs.note == 'x'", BOOLEAN),
        ("inputs.limit < 3", BOOLEAN),
        ("inputs.title < inputs.note", BOOLEAN),
        ("trigger.payload.n < 3", BOOLEAN),
        ("trigger.payload.n == inputs.labels", BOOLEAN),
        ("trigger.payload.draft and inputs.dry_run", BOOLEAN),
        ("not inputs.dry_run or inputs.flag == true", BOOLEAN),
        ("'bug' in inputs.labels", BOOLEAN),
        ("3 in inputs.things", BOOLEAN),
        ("inputs.title.contains('x')", BOOLEAN),
        ("'x' in inputs.note", BOOLEAN),
        ("'key' in inputs.settings", BOOLEAN),
        ("trigger.payload.contains(3)", BOOLEAN),
        ("trigger.type == 'webhook'", BOOLEAN),
        ("'failed' != phases.review.status", BOOLEAN),
    ],
)
def test_a_correct_expression_has_a_type(text: str, kind: Type) -> None:
    checked = check_expression(text, NAMES)

    assert checked.mistakes == ()
    assert checked.type == kind


@pytest.mark.parametrize(
    ("text", "start", "width", "message"),
    [
        ("nope", 0, 4, "unknown name 'nope'"),
        ("nope and false", 0, 4, "unknown name 'nope'"),
        ("false and nope", 10, 4, "unknown name 'nope'"),
        ("true or inputs.nope", 15, 4, "inputs has no field 'nope'"),
        ("item == 1", 0, 4, "'item' exists only inside for_each"),
        ("phases.later.output == 'x'", 7, 5, "phase 'later' may not have ended"),
        ("phases.nope.output", 7, 4, "phases has no field 'nope'"),
        ("phases.review.otput", 14, 5, "phases.review has no field 'otput'"),
        ("phases.review.output.ok", 21, 2, "phases.review.output has no field 'ok'"),
        (
            "phases.review.output.comments.x",
            30,
            1,
            "phases.review.output.comments is a text and has no fields",
        ),
        ("inputs.title.x", 13, 1, "inputs.title is a text and has no fields"),
        ("inputs.labels.x", 14, 1, "inputs.labels is a list and has no field 'x'"),
        ("inputs.settings[0]", 16, 1, "inputs.settings is an object and has no index"),
        ("inputs.count[0]", 13, 1, "inputs.count is a number and has no fields"),
        ("phases", 0, 6, "phases is not a value; it has the fields review"),
        ("phases.review", 0, 13, "phases.review is not a value; it has the fields status, output"),
        ("inputs.count < inputs.title", 0, 27, "'<' cannot order a number and a text"),
        ("inputs.dry_run < 1", 0, 14, "'<' orders numbers or texts; this is true or false"),
        ("1 <= null", 5, 4, "'<=' orders numbers or texts; this is null"),
        ("inputs.count == '3'", 0, 19, "a number never equals a text"),
        ("true != inputs.count", 0, 20, "true or false never equals a number"),
        ("inputs.labels == 'bug'", 0, 22, "a list never equals a text"),
        ("trigger.type == 'webhok'", 16, 8, "'webhok' is not one of manual, webhook"),
        ("'ok' == phases.review.status", 0, 4, "'ok' is not one of succeeded, failed"),
        ("3 in inputs.labels", 0, 1, "a number never equals a text"),
        ("3 in inputs.title", 0, 1, "a text contains texts; this is a number"),
        (
            "inputs.count.contains(3)",
            0,
            12,
            "texts, lists and objects contain something; this is a number",
        ),
        (
            "'x' in inputs",
            7,
            6,
            "inputs is not a value; it has the fields title, count, dry_run, note, limit, flag, labels, things, settings",
        ),
        ("inputs.title and true", 0, 12, "'and' joins conditions; this is a text"),
        ("true or inputs.count", 8, 12, "'or' joins conditions; this is a number"),
        ("not inputs.title", 4, 12, "a condition is true or false; this is a text"),
        ("not null", 4, 4, "a condition is true or false; this is null"),
        ("inputs.flag and true", 0, 11, "this may be null; a condition is true or false"),
        ("-inputs.title", 1, 12, "'-' takes a number, not a text"),
    ],
)
def test_a_wrong_expression_is_a_mistake_at_its_column(
    text: str, start: int, width: int, message: str
) -> None:
    assert mistakes(text) == [(start, width, message)]


def test_every_mistake_of_an_expression_is_found_and_none_twice() -> None:
    found = mistakes("nope.x == 1 and inputs.titel == 'a' or inputs.count < 'b' or item")

    assert [message for _, _, message in found] == [
        "unknown name 'nope'",
        "inputs has no field 'titel'",
        "'<' cannot order a number and a text",
        "'item' exists only inside for_each",
    ]


@pytest.mark.parametrize(
    ("text", "wanted", "message"),
    [
        ("inputs.title", Kind.BOOLEAN, "a condition is true or false; this is a text"),
        ("inputs.flag", Kind.BOOLEAN, "this may be null; a condition is true or false"),
        ("null", Kind.BOOLEAN, "a condition is true or false; this is null"),
        ("inputs.title", Kind.LIST, "expected a list, got a text"),
        ("inputs.settings", Kind.LIST, "expected a list, got an object"),
    ],
)
def test_the_place_of_an_expression_says_what_it_takes(
    text: str, wanted: Kind, message: str
) -> None:
    assert mistakes(text, wanted) == [(0, len(text), message)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("inputs.dry_run", Kind.BOOLEAN),
        ("trigger.payload.draft", Kind.BOOLEAN),
        ("inputs.labels", Kind.LIST),
        ("trigger.payload", Kind.LIST),
    ],
)
def test_a_value_of_the_right_kind_or_of_unknown_shape_is_taken(text: str, wanted: Kind) -> None:
    assert mistakes(text, wanted) == []


def test_a_mistake_names_the_word_and_what_it_could_have_been() -> None:
    (mistake,) = check_expression("inputs.titel == 'a'", NAMES).mistakes

    assert mistake.word == "titel"
    assert "title" in mistake.known
