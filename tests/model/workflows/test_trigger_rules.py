"""Trigger rules: every rule over every combination of how two dependencies stand, and how a block ends."""

from __future__ import annotations

from itertools import product

import pytest

from model.workflows.workflow_values import agent
from nightherd.model.workflows.definition import OnFailure, Phase, TriggerRule
from nightherd.model.workflows.node import Node, NodeKey, NodeStatus, SkipCause
from nightherd.model.workflows.rules import (
    PENDING,
    READY,
    Skipped,
    Standing,
    block_end,
    decide,
    standing_of,
)

S, T, F, C, K, U, N = (
    Standing.SUCCEEDED,
    Standing.TOLERATED,
    Standing.FAILED,
    Standing.CANCELLED,
    Standing.SKIPPED,
    Standing.UPSTREAM_FAILED,
    Standing.OPEN,
)
RUN, WAIT, SKIP, LOST = "run", "wait", "skip", "lost"
"""Runs; not decided yet; skipped; did not run because something failed."""

TABLE = {
    #                 all_success one_success min_one  all_done one_failed
    (S, S): (RUN, RUN, RUN, RUN, SKIP),
    (S, T): (RUN, RUN, RUN, RUN, RUN),
    (S, F): (LOST, RUN, LOST, RUN, RUN),
    (S, C): (LOST, RUN, LOST, RUN, RUN),
    (S, K): (SKIP, RUN, RUN, RUN, SKIP),
    (S, U): (LOST, RUN, LOST, RUN, RUN),
    (S, N): (WAIT, RUN, WAIT, WAIT, WAIT),
    (T, T): (RUN, RUN, RUN, RUN, RUN),
    (T, F): (LOST, RUN, LOST, RUN, RUN),
    (T, K): (SKIP, RUN, RUN, RUN, RUN),
    (T, N): (WAIT, RUN, WAIT, WAIT, RUN),
    (F, F): (LOST, LOST, LOST, RUN, RUN),
    (F, K): (LOST, LOST, LOST, RUN, RUN),
    (F, U): (LOST, LOST, LOST, RUN, RUN),
    (F, N): (WAIT, WAIT, WAIT, WAIT, RUN),
    (C, C): (LOST, LOST, LOST, RUN, RUN),
    (C, N): (WAIT, WAIT, WAIT, WAIT, RUN),
    (K, K): (SKIP, SKIP, SKIP, RUN, SKIP),
    (K, U): (LOST, LOST, LOST, RUN, RUN),
    (K, N): (WAIT, WAIT, WAIT, WAIT, WAIT),
    (U, U): (LOST, LOST, LOST, RUN, RUN),
    (U, N): (WAIT, WAIT, WAIT, WAIT, RUN),
    (N, N): (WAIT, WAIT, WAIT, WAIT, WAIT),
}
RULES = (
    TriggerRule.ALL_SUCCESS,
    TriggerRule.ONE_SUCCESS,
    TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    TriggerRule.ALL_DONE,
    TriggerRule.ONE_FAILED,
)


def word(rule: TriggerRule, *standings: Standing) -> str:
    match decide(rule, {f"p{number}": one for number, one in enumerate(standings)}):
        case Skipped(cause=cause):
            return LOST if cause is SkipCause.FAILED else SKIP
        case verdict:
            return RUN if verdict == READY else WAIT


@pytest.mark.parametrize(("pair", "expected"), TABLE.items())
def test_each_rule_over_each_pair_of_dependencies(
    pair: tuple[Standing, Standing], expected: tuple[str, ...]
) -> None:
    first, second = pair

    assert tuple(word(rule, first, second) for rule in RULES) == expected
    assert tuple(word(rule, second, first) for rule in RULES) == expected


def test_a_phase_without_dependencies_runs_at_once_or_never() -> None:
    assert [word(rule) for rule in RULES] == [RUN, SKIP, SKIP, RUN, SKIP]


@pytest.mark.parametrize("rule", RULES)
def test_a_verdict_never_changes_when_more_dependencies_end(rule: TriggerRule) -> None:
    for standings in product(Standing, repeat=3):
        before = word(rule, *standings)
        if before == WAIT or N not in standings:
            continue
        place = standings.index(N)
        for ended in set(Standing) - {N}:
            later = (*standings[:place], ended, *standings[place + 1 :])
            assert word(rule, *later) == before


@pytest.mark.parametrize(
    ("dependencies", "reason"),
    [
        ({"a": S, "b": F}, "'b' failed"),
        ({"a": K, "b": F}, "'b' failed"),
        ({"a": C}, "'a' was cancelled"),
        ({"a": U}, "'a' did not run"),
        ({"a": S, "b": K}, "'b' was skipped"),
    ],
)
def test_the_reason_names_the_dependency(dependencies: dict[str, Standing], reason: str) -> None:
    verdict = decide(TriggerRule.ALL_SUCCESS, dependencies)

    assert isinstance(verdict, Skipped)
    assert verdict.reason == reason


def test_rules_wait_for_dependencies_that_are_open() -> None:
    assert decide(TriggerRule.ALL_DONE, {"a": N}) == PENDING


@pytest.mark.parametrize(
    ("status", "cause", "strict", "tolerant"),
    [
        (NodeStatus.WAITING, None, N, N),
        (NodeStatus.RUNNING, None, N, N),
        (NodeStatus.PAUSED, None, N, N),
        (NodeStatus.SUCCEEDED, None, S, S),
        (NodeStatus.FAILED, None, F, T),
        (NodeStatus.CANCELLED, None, C, C),
        (NodeStatus.SKIPPED, SkipCause.CONDITION, K, K),
        (NodeStatus.SKIPPED, SkipCause.SKIPPED, K, K),
        (NodeStatus.SKIPPED, SkipCause.FAILED, U, U),
    ],
)
def test_how_a_node_stands_towards_others(
    status: NodeStatus, cause: SkipCause | None, strict: Standing, tolerant: Standing
) -> None:
    node = Node(key=NodeKey("a"), status=status, cause=cause)

    assert standing_of(agent("a"), node) is strict
    assert standing_of(agent("a", on_failure=OnFailure.CONTINUE), node) is tolerant


RECOVER = TriggerRule.ONE_FAILED
CHAIN = (
    agent("a"),
    agent("b", needs="a"),
    agent("c", needs="b"),
    agent("r", needs="c", trigger_rule=RECOVER),
)


@pytest.mark.parametrize(
    ("phases", "standings", "status", "because_of"),
    [
        (CHAIN, (S, S, S, K), NodeStatus.SUCCEEDED, ()),
        (CHAIN, (K, K, K, K), NodeStatus.SUCCEEDED, ()),
        (CHAIN, (F, U, U, S), NodeStatus.SUCCEEDED, ()),
        (CHAIN, (F, U, U, F), NodeStatus.FAILED, ("a", "r")),
        (CHAIN, (F, U, U, T), NodeStatus.FAILED, ("a",)),
        (CHAIN, (F, U, U, K), NodeStatus.FAILED, ("a",)),
        (CHAIN, (T, S, S, K), NodeStatus.SUCCEEDED, ()),
        (CHAIN, (C, U, U, S), NodeStatus.SUCCEEDED, ()),
        (CHAIN, (C, U, U, K), NodeStatus.CANCELLED, ("a",)),
        (CHAIN, (C, F, U, K), NodeStatus.FAILED, ("b",)),
        (
            (agent("a"), agent("x"), agent("r", needs="a", trigger_rule=RECOVER)),
            (F, F, S),
            NodeStatus.FAILED,
            ("x",),
        ),
        (
            (agent("a"), agent("d", needs="a", trigger_rule=TriggerRule.ALL_DONE)),
            (F, S),
            NodeStatus.FAILED,
            ("a",),
        ),
    ],
)
def test_a_block_fails_unless_its_failures_are_recovered(
    phases: tuple[Phase, ...],
    standings: tuple[Standing, ...],
    status: NodeStatus,
    because_of: tuple[str, ...],
) -> None:
    names = [phase.name for phase in phases]

    end = block_end(phases, dict(zip(names, standings, strict=True)))

    assert (end.status, end.because_of) == (status, because_of)
