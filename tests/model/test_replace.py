"""Replacing fields is what `dataclasses` means by it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from nightherd.model.agents.state import AgentState
from nightherd.model.jobs.outcome import Tally
from nightherd.model.replace import replace
from nightherd.state.tables import KINDS
from nightherd.testing.state_values import submit

ROWS: list[Any] = [submit(1).job, submit(1).session, submit(1).texts, AgentState(name="a"), Tally()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_every_field_can_be_replaced_and_the_others_stay(row: Any) -> None:
    for field in dataclasses.fields(row):
        changed = replace(row, **{field.name: "new"})
        assert changed == dataclasses.replace(row, **{field.name: "new"})
        assert type(changed) is type(row)
        assert changed is not row


def test_a_field_that_is_not_there_is_an_error() -> None:
    unknown: Any = {"epohc": 2}

    with pytest.raises(TypeError, match="Job has no field 'epohc'"):
        replace(submit(1).job, **unknown)


@pytest.mark.parametrize("kind", [*KINDS, Tally], ids=lambda kind: kind.__name__)
def test_every_row_can_be_copied_from_slot_to_slot(kind: Any) -> None:
    assert kind.__slots__ == tuple(field.name for field in dataclasses.fields(kind))
    assert not hasattr(kind, "__post_init__")
