"""Cells add up to what the job's tally has, wherever a reader stops, and each is of the right model and time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nightherd.decoding import decode_json
from nightherd.errors import InvalidValueError
from nightherd.model.costs.cell import NO_MODEL, Cell, quarter_of
from nightherd.model.costs.fold import (
    EMPTY,
    CostFold,
    RowTotals,
    extend_costs,
    settle_costs,
)
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import (
    Complete,
    ExecutionStarted,
    Init,
    Recovered,
    Resumed,
    Suspension,
    SystemSubtype,
)
from nightherd.model.units import MicroUsd
from nightherd.model.usage import NOTHING_USED, Usage

BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
MODELS = ("opus", "haiku", "sonnet")

usages = st.builds(
    Usage,
    input_tokens=st.integers(0, 9_000),
    output_tokens=st.integers(0, 9_000),
    cache_read_input_tokens=st.integers(0, 9_000),
    cost_microusd=st.integers(0, 10**7).map(MicroUsd),
)


def extra_of(usage: Usage) -> dict[str, object]:
    """How the error of a run says what it has used."""
    return {"usage": msgspec.to_builtins(usage)}


by_model = st.dictionaries(st.sampled_from(MODELS), usages, max_size=3)
responses = st.sampled_from(MODELS).map(lambda name: {"response": {"model_name": name}})
events = st.one_of(
    st.builds(
        AssistantEvent,
        content=st.just("moo"),
        usage=st.none() | usages,
        turn=st.integers(1, 9),
        end=st.booleans(),
        extra=st.none() | responses,
    ),
    st.builds(AssistantEvent, partial=st.just(True), usage=usages),
    st.builds(ToolUseEvent, tool_name=st.just("Bash"), tool_use_id=st.sampled_from("ab")),
    st.builds(ToolResultEvent, tool_use_id=st.sampled_from("ab"), turn=st.integers(1, 9)),
    st.builds(ErrorEvent, message=st.just("no"), extra=usages.map(extra_of)),
    st.builds(SystemEvent, subtype=st.sampled_from(SystemSubtype)),
    st.builds(
        lambda model: describe(Init(runtime="claude", model=model)),
        st.none() | st.sampled_from(MODELS),
    ),
    st.builds(
        lambda usage, models: describe(Complete(usage=usage, model_usage=models)),
        st.none() | usages,
        st.none() | by_model,
    ),
    st.just(describe(ExecutionStarted(worker="worker-1"))),
    st.just(describe(Recovered(lost_execution="job-1.1", reason="gone"))),
    st.just(describe(Resumed(reason="retry"))),
    st.just(describe(Suspension(reason=SuspendReason.APPROVAL))),
)


def journal(some: Iterable[Event], apart: timedelta = timedelta(minutes=4)) -> list[Event]:
    """The events as a journal has them: numbered, some minutes apart."""
    return [
        msgspec.structs.replace(event, seq=seq, epoch=1, v=1, timestamp=BEGIN + seq * apart)
        for seq, event in enumerate(some, 1)
    ]


def tally_of(lines: Sequence[Event]) -> Tally:
    """What the engine would make of the same journal."""
    tally = Tally()
    for event in lines:
        try:
            tally = tally.add(event)
        except InvalidValueError:  # a line that fits no schema
            continue
    return tally


def added(cells: Iterable[Cell]) -> dict[tuple[int, str], tuple[Usage, int]]:
    """The cells, each place once."""
    found: dict[tuple[int, str], tuple[Usage, int]] = {}
    for cell in cells:
        key = (cell.quarter, cell.model)
        usage, turns = found.get(key, (NOTHING_USED, 0))
        found[key] = (usage + cell.usage, turns + cell.turns)
    return {key: value for key, value in found.items() if value != (NOTHING_USED, 0)}


def whole(cells: Iterable[Cell]) -> tuple[Usage, int]:
    """What they come to."""
    known = list(cells)
    return sum((cell.usage for cell in known), NOTHING_USED), sum(cell.turns for cell in known)


@given(st.lists(events, max_size=40))
def test_cells_add_up_to_the_tally_of_the_journal(some: list[Event]) -> None:
    lines = journal(some)
    _, cells = extend_costs(EMPTY, lines)
    tally = tally_of(lines)

    assert whole(cells) == (tally.usage, tally.turns)


@given(st.lists(events, max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_cells_are_the_same_wherever_a_reader_stops(some: list[Event], stops: list[int]) -> None:
    lines = journal(some)
    fold, cells = extend_costs(EMPTY, lines)
    places = sorted({0, len(lines), *(min(stop, len(lines)) for stop in stops)})
    pieces: list[Cell] = []
    kept = EMPTY
    for begin, end in pairwise(places):
        kept = decode_json(msgspec.json.encode(kept), CostFold)
        kept, more = extend_costs(kept, lines[max(begin - 1, 0) : end])  # the last one again
        pieces += more

    assert kept == fold
    assert added(pieces) == added(cells)


@given(st.lists(events, max_size=30), usages, st.integers(0, 20), st.lists(events, max_size=5))
def test_a_job_that_does_not_run_adds_up_to_its_row(
    some: list[Event], beyond: Usage, turns: int, later: list[Event]
) -> None:
    lines = journal(some)
    fold, cells = extend_costs(EMPTY, lines)
    row = RowTotals(
        usage=tally_of(lines).usage + beyond, turns=turns, last_seq=len(lines), at=BEGIN
    )

    settled, more = settle_costs(fold, row)
    again, nothing = settle_costs(settled, row)

    assert whole([*cells, *more]) == (row.usage, row.turns)
    assert (again, nothing) == (settled, [])
    longer = journal([*some, *later])
    ended = RowTotals(usage=tally_of(longer).cut_off.usage, turns=3, is_ended=True, at=BEGIN)
    fold, then = extend_costs(settled, longer)
    fold, last = settle_costs(fold, ended)
    assert whole([*cells, *more, *then, *last]) == (ended.usage, 3)


def test_a_row_that_is_older_than_the_journal_changes_nothing() -> None:
    fold, _ = extend_costs(EMPTY, journal([AssistantEvent(usage=Usage(output_tokens=5))] * 3))

    assert settle_costs(fold, RowTotals(last_seq=2)) == (fold, [])


def test_each_cell_is_of_the_model_that_answered_and_of_its_time() -> None:
    used = Usage(output_tokens=1, cost_microusd=MicroUsd(10))
    answers = [
        AssistantEvent(content="moo", usage=used, extra={"response": {"model_name": name}})
        for name in ("opus", "opus", "haiku", "opus")
    ]

    _, cells = extend_costs(EMPTY, journal(answers, apart=timedelta(minutes=14)))

    first = quarter_of(BEGIN)
    assert added(cells) == {
        (first, "opus"): (used, 0),
        (first + 1, "opus"): (used, 0),
        (first + 2, "haiku"): (used, 0),
        (first + 3, "opus"): (used, 0),
    }


def test_usage_by_model_at_the_end_of_a_run_replaces_what_was_counted_in_it() -> None:
    guessed = Usage(output_tokens=4, cost_microusd=MicroUsd(100))
    opus = Usage(output_tokens=10, cost_microusd=MicroUsd(301))
    haiku = Usage(output_tokens=30, cost_microusd=MicroUsd(7))
    sum_of_both = Usage(output_tokens=40, cost_microusd=MicroUsd(309))  # rounded as a whole
    run: list[Event] = [
        describe(ExecutionStarted(worker="worker-1")),
        describe(Init(runtime="claude", model="opus")),
        AssistantEvent(content="moo", usage=guessed, turn=1, end=True),
        describe(Complete(usage=sum_of_both, model_usage={"haiku": haiku, "opus": opus})),
    ]

    _, cells = extend_costs(EMPTY, journal([*run, *run], apart=timedelta(seconds=1)))

    by_model = {model: value for (_, model), value in added(cells).items()}
    assert by_model == {
        "opus": (Usage(output_tokens=20, cost_microusd=MicroUsd(604)), 1),
        "haiku": (haiku + haiku, 0),
    }


def test_a_job_without_a_journal_counts_when_it_ended_with_no_model() -> None:
    used = Usage(output_tokens=5, cost_microusd=MicroUsd(9))
    row = RowTotals(usage=used, turns=2, is_ended=True, at=BEGIN + QUARTER)

    _, cells = settle_costs(EMPTY, row)

    assert cells == [Cell(quarter=quarter_of(BEGIN) + 1, model=NO_MODEL, usage=used, turns=2)]


def test_a_fold_keeps_no_texts() -> None:
    text = "moo " * 10_000
    lines = journal(
        [
            AssistantEvent(content=text, end=True),
            ErrorEvent(message=text),
            describe(Init(runtime="claude", model="m" * 9_000)),
            describe(Complete(summary=text)),
        ]
    )

    fold, _ = extend_costs(EMPTY, lines)

    assert isinstance(fold, CostFold)
    assert len(msgspec.json.encode(fold)) < 2_000
