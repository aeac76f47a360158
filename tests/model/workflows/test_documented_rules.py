"""The table of trigger rules and final statuses on the page of workflow files is what the rules decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.workflows.workflow_values import agent
from nightherd.model.workflows.definition import OnFailure, TriggerRule
from nightherd.model.workflows.node import SkipCause
from nightherd.model.workflows.rules import Skipped, Standing, block_end, decide

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats" / "workflow-file.md"
FIRST = "| the dependency |"
STANDINGS = {
    "succeeded": Standing.SUCCEEDED,
    "failed, with `on_failure: continue`": Standing.TOLERATED,
    "failed": Standing.FAILED,
    "was cancelled": Standing.CANCELLED,
    "was skipped": Standing.SKIPPED,
    "was lost": Standing.UPSTREAM_FAILED,
}


def rows() -> list[list[str]]:
    lines = PAGE.read_text().splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(FIRST))
    table = [line for line in lines[start : start + 2 + len(STANDINGS)] if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


HEAD, _, *ROWS = rows()


def word(rule: TriggerRule, standing: Standing) -> str:
    match decide(rule, {"a": standing}):
        case Skipped(cause=cause):
            return "lost" if cause is SkipCause.FAILED else "skipped"
        case _:
            return "runs"


def test_the_table_has_every_rule_and_every_way_to_end() -> None:
    assert [cell.strip("`") for cell in HEAD[1:-1]] == [rule.value for rule in TriggerRule]
    assert [row[0] for row in ROWS] == list(STANDINGS)
    assert set(STANDINGS.values()) == set(Standing) - {Standing.OPEN}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_row_says_what_the_rules_decide(row: list[str]) -> None:
    standing = STANDINGS[row[0]]

    assert row[1:-1] == [word(rule, standing) for rule in TriggerRule]
    if standing is not Standing.UPSTREAM_FAILED:
        tolerant = OnFailure.CONTINUE if standing is Standing.TOLERATED else OnFailure.FAIL
        end = block_end([agent("a", on_failure=tolerant)], {"a": standing})
        assert row[-1] == end.status.value
