"""The graph of a block: its order, its cycles, what is certain before a phase begins, and what never begins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.workflows.definition import (
    OnFailure,
    Phase,
    TriggerRule,
    WaitAction,
    every_phase,
)
from nightherd.model.workflows.graph import certain_before, cycle_in, in_order, never_runs

WAIT = WaitAction(duration="1s")


def phases(*lines: str) -> tuple[Phase, ...]:
    """Phases written as `name[!] [rule]: dependency ...`; `!` for one whose failure is tolerated."""
    return tuple(map(phase, lines))


def phase(line: str) -> Phase:
    head, _, dependencies = line.partition(":")
    name, _, rule = head.partition(" ")
    return Phase(
        name=name.removesuffix("!"),
        action=WAIT,
        depends_on=tuple(dependencies.split()),
        trigger_rule=TriggerRule(rule) if rule else TriggerRule.ALL_SUCCESS,
        on_failure=OnFailure.CONTINUE if name.endswith("!") else OnFailure.FAIL,
    )


def names(found: tuple[Phase, ...]) -> str:
    return "".join(one.name for one in found)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], ""),
        (["a", "b", "c"], "abc"),
        (["a: b", "b: c", "c"], "cba"),
        (["a: c", "b", "c", "d: a"], "bcad"),
        (["a: b", "b: a", "c"], "c"),
        (["a: a", "b: a"], ""),
        (["a: nope", "b"], "ab"),
    ],
)
def test_dependencies_come_first_and_else_the_order_of_the_file(
    lines: list[str], expected: str
) -> None:
    assert names(in_order(phases(*lines))) == expected


@pytest.mark.parametrize(
    ("lines", "cycle"),
    [
        (["a", "b: a"], None),
        (["a: a"], ("a", "a")),
        (["a: b", "b: a"], ("a", "b", "a")),
        (["x", "a: c x", "b: a", "c: b"], ("a", "c", "b", "a")),
        (["d: a", "a: b", "b: a"], ("a", "b", "a")),
    ],
)
def test_a_cycle_is_named(lines: list[str], cycle: tuple[str, ...] | None) -> None:
    assert cycle_in(phases(*lines)) == cycle


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a", "b: a", "c: b"], {"a": "", "b": "a", "c": "ab"}),
        (["a", "b", "c: a b"], {"c": "ab"}),
        (["a", "b", "c all_done: a b"], {"c": "ab"}),
        (["a", "b", "c none_failed_min_one_success: a b"], {"c": "ab"}),
        (["a", "b", "c one_success: a b", "d: c"], {"c": "", "d": "c"}),
        (["a", "b one_failed: a"], {"b": "a"}),
        (["r", "a: r", "b: r", "c one_success: a b"], {"c": "r"}),
        (["r", "a: r", "b: a", "c one_failed: a b"], {"c": "ar"}),
    ],
)
def test_what_has_ended_for_certain_before_a_phase_begins(
    lines: list[str], expected: dict[str, str]
) -> None:
    certain = certain_before(phases(*lines))

    assert {name: "".join(sorted(certain[name])) for name in expected} == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a", "b: a", "c all_done: b", "d one_failed: a"], {}),
        (["a one_failed"], {"a": "one_failed needs a phase to depend on"}),
        (
            ["a one_success", "b: a"],
            {"a": "one_success needs", "b": "it depends on 'a', which never"},
        ),
        (["a one_failed", "b all_done: a"], {"a": "one_failed needs"}),
        (["a one_failed", "x", "b one_success: a x"], {"a": "one_failed needs"}),
        (
            ["a one_failed", "b one_success: a"],
            {"a": "one_failed needs", "b": "it depends on 'a', which never run"},
        ),
        (["a", "r one_failed: a", "b: a r"], {"b": "it needs 'a' both to succeed and to fail"}),
        (["a", "m: a", "r one_failed: a", "b: m r"], {"b": "it needs 'a' both"}),
        (["a!", "r one_failed: a", "b: a r"], {}),
        (["a", "x", "r one_failed: a x", "b: a r"], {}),
    ],
)
def test_a_phase_whose_rule_can_never_hold_is_named_with_the_reason(
    lines: list[str], expected: dict[str, str]
) -> None:
    found = never_runs(phases(*lines))

    assert found.keys() == expected.keys()
    assert all(found[name].startswith(reason) for name, reason in expected.items())


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Phase, ...]:
    order = draw(st.permutations(range(6)))
    lines = []
    for place, number in enumerate(order):
        above = [f"p{one}" for one in order[:place]]
        chosen = draw(st.lists(st.sampled_from(above), unique=True)) if above else []
        rule = draw(st.sampled_from(TriggerRule))
        lines.append((number, f"p{number} {rule}: {' '.join(chosen)}"))
    return phases(*(line for _, line in sorted(lines)))


@given(graphs())
def test_the_order_has_every_phase_once_behind_its_dependencies(graph: tuple[Phase, ...]) -> None:
    ordered = [one.name for one in in_order(graph)]

    assert sorted(ordered) == sorted(one.name for one in every_phase(graph))
    for one in graph:
        assert all(ordered.index(name) < ordered.index(one.name) for name in one.depends_on)
    certain = certain_before(graph)
    assert all(one.name not in certain[one.name] for one in graph)
