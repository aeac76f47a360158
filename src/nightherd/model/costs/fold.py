"""Fold: from a job's events to its cells, as many at a time as there are.

The totals are those of `Tally`, which the job's row has too; here they are divided by time and by model. The model is
the one that the runtime names, at its start or in an answer. At its end a runtime may say what it used by model: then
that counts for the whole run, and the difference to what was counted until then is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.decoding import convert
from nightherd.errors import InvalidValueError
from nightherd.model.costs.cell import EPOCH, NO_MODEL, Cell, quarter_of
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import AssistantEvent, Event, SystemEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.text import shorten, whole_text
from nightherd.model.usage import NOTHING_USED, Usage

RUN_BEGINS = frozenset(
    {SystemSubtype.EXECUTION_STARTED, SystemSubtype.RECOVERED, SystemSubtype.RESUMED}
)
"""From these events on another run counts what it uses from its own beginning."""
MODEL_LIMIT = 120
"""Characters of a model's name that are kept."""


class RowTotals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job's row says that it used, and up to where in its journal."""

    usage: Usage = NOTHING_USED
    turns: int = 0
    last_seq: int = 0
    is_ended: bool = False
    at: datetime = EPOCH
    """When the job ended, or the row was written."""


class CostFold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a fold needs to continue after `last_seq`."""

    last_seq: int = 0
    last_at: datetime = EPOCH
    tally: Tally = Tally()
    model: str = NO_MODEL
    """The model that was named last."""
    run: Mapping[str, Usage] = {}
    """What was counted since the run began, by model."""
    beyond: Usage = NOTHING_USED
    """What the job's row had more than the journal, when they were last compared."""
    beyond_turns: int = 0


EMPTY = CostFold()


def extend_costs(fold: CostFold, events: Iterable[Event]) -> tuple[CostFold, list[Cell]]:
    """Return the fold with these events, and the cells to be added for them. Events that it has already are left out."""
    making = _Fold(fold)
    for event in events:
        if event.seq > making.last_seq:
            making.add(event)
    return making.result(), making.cells.made()


def settle_costs(fold: CostFold, row: RowTotals) -> tuple[CostFold, list[Cell]]:
    """Return the fold and the cells after which they add up to what the row of a job that does not run says.

    So a job is counted whose journal is lost or says nothing of costs. A row that is older than the journal changes
    nothing.
    """
    if not row.is_ended and row.last_seq < fold.last_seq:
        return fold, []
    making = _Fold(fold)
    making.cut_off()
    making.compare(row)
    return making.result(), making.cells.made()


class _Cells:
    """Cells being added up."""

    def __init__(self) -> None:
        self._usage: dict[tuple[int, str], Usage] = {}
        self._turns: dict[tuple[int, str], int] = {}

    def add(self, at: datetime, model: str, usage: Usage, turns: int = 0) -> None:
        key = (quarter_of(at), model)
        self._usage[key] = self._usage.get(key, NOTHING_USED) + usage
        self._turns[key] = self._turns.get(key, 0) + turns

    def made(self) -> list[Cell]:
        """Return those that are not nothing."""
        return [
            Cell(quarter=key[0], model=key[1], usage=usage, turns=self._turns[key])
            for key, usage in self._usage.items()
            if usage != NOTHING_USED or self._turns[key]
        ]


class _Fold:
    """A fold being made."""

    def __init__(self, fold: CostFold) -> None:
        self._before = fold
        self.cells = _Cells()
        self.last_seq, self._at = fold.last_seq, fold.last_at
        self._tally = fold.tally
        self._model = fold.model
        self._run = dict(fold.run)
        self._beyond, self._beyond_turns = fold.beyond, fold.beyond_turns

    def add(self, event: Event) -> None:
        """Take in the next event."""
        self._at = event.timestamp or self._at
        self._model = _model_in(event) or self._model
        before = self._tally
        with suppress(InvalidValueError):  # a line that fits no schema says nothing of costs
            self._tally = before.add(event)
        used = self._tally.usage - before.usage
        turns = self._tally.turns - before.turns
        if turns:
            self.cells.add(self._at, self._model, NOTHING_USED, turns)
        by_model = _models_in(event)
        if by_model is not None:
            self._divide(by_model, used)
        elif used != NOTHING_USED:
            self._count(self._model, used)
        if isinstance(event, SystemEvent) and event.subtype in RUN_BEGINS:
            self._run = {}
        self.last_seq = event.seq

    def cut_off(self) -> None:
        """Count what an answer that never came is taken to have used: the job does not run any more."""
        before, self._tally = self._tally, self._tally.cut_off
        if self._tally.usage != before.usage:
            self._count(self._model, self._tally.usage - before.usage)

    def compare(self, row: RowTotals) -> None:
        """Count what the row has more."""
        beyond, turns = row.usage - self._tally.usage, row.turns - self._tally.turns
        self.cells.add(row.at, self._model, beyond - self._beyond, turns - self._beyond_turns)
        self._beyond, self._beyond_turns = beyond, turns

    def result(self) -> CostFold:
        """Return what the next step continues from, without texts."""
        tally = replace(
            self._tally, answer=None, outcome=None, session_note=None, runtime_session_id=None
        )
        return replace(
            self._before,
            last_seq=self.last_seq,
            last_at=self._at,
            tally=tally,
            model=self._model,
            run=self._run,
            beyond=self._beyond,
            beyond_turns=self._beyond_turns,
        )

    def _count(self, model: str, used: Usage) -> None:
        self.cells.add(self._at, model, used)
        self._run[model] = self._run.get(model, NOTHING_USED) + used

    def _divide(self, by_model: Mapping[str, Usage], used: Usage) -> None:
        """The run has used `used` more, and all of what it used by model is known now.

        A model's cost is rounded by itself, so the sum may differ by little: that is the main model's.
        """
        counted = sum(self._run.values(), NOTHING_USED)
        rest = counted + used - sum(by_model.values(), NOTHING_USED)
        main = self._model
        if main not in by_model:
            main = max(by_model, key=lambda name: by_model[name].cost_microusd)
        target = {**by_model, main: by_model[main] + rest}
        for model in dict.fromkeys((*self._run, *target)):
            more = target.get(model, NOTHING_USED) - self._run.get(model, NOTHING_USED)
            if more != NOTHING_USED:
                self._count(model, more)


def _model_in(event: Event) -> str | None:
    """Return the model that an event names: the one that a runtime starts with, or that has answered."""
    extra: dict[str, Any] = getattr(event, "extra", None) or {}
    name = None
    if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.INIT:
        name = extra.get("model")
    elif isinstance(event, AssistantEvent) and isinstance(extra.get("response"), dict):
        name = extra["response"].get("model_name")
    return _name(name) if isinstance(name, str) else None


def _models_in(event: Event) -> Mapping[str, Usage] | None:
    """Return what a run says at its end that it used by model; None when it says nothing of that."""
    if not isinstance(event, SystemEvent) or event.subtype is not SystemSubtype.COMPLETE:
        return None
    extra = event.extra or {}
    try:
        found = convert(extra.get("model_usage"), dict[str, Usage] | None)
    except msgspec.ValidationError:
        return None
    if not found or extra.get("usage") is None:
        return None
    merged: dict[str, Usage] = {}
    for name, usage in found.items():
        kept = _name(name)
        merged[kept] = merged.get(kept, NOTHING_USED) + usage
    return merged


def _name(name: str) -> str:
    return whole_text(shorten(name, MODEL_LIMIT))
