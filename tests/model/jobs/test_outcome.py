"""Outcome and Tally: what a record comes to, whole or cut off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.jobs.job import ExitReason, JobStatus
from nightherd.model.jobs.outcome import EXIT_OF_CODE, SILENT_END, Outcome, Tally
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
    SystemSubtype,
    UserInput,
    Warned,
)
from nightherd.model.units import MicroUsd
from nightherd.model.usage import NOTHING_USED, Usage

SOME = Usage(input_tokens=5, output_tokens=2, cost_microusd=MicroUsd(30))


def tally(*events: Event) -> Tally:
    total = Tally()
    for event in events:
        total = total.add(event)
    return total


def answer(turn: int, content: str | None = "text", *, end: bool = True) -> AssistantEvent:
    return AssistantEvent(content=content, turn=turn, index=0, end=end, usage=SOME)


def call(turn: int, name: str) -> ToolUseEvent:
    return ToolUseEvent(tool_name="Bash", tool_use_id=name, turn=turn, end=True)


def result(turn: int, name: str) -> ToolResultEvent:
    return ToolResultEvent(tool_use_id=name, turn=turn, end=True)


def test_a_turn_counts_when_its_answer_is_whole() -> None:
    assert tally(answer(1)).turns == 1
    assert tally(answer(1, end=False)).turns == 0
    assert tally(answer(1), answer(2)).turns == 2


def test_what_the_agent_is_told_in_a_turn_is_not_its_answer() -> None:
    told = SystemEvent(subtype=SystemSubtype.USER_INPUT, content="Cut off.", turn=1, end=True)
    begun = tally(answer(1, end=False), told)

    assert (begun.turns, begun.messages) == (0, 1)
    assert begun.add(answer(1)).turns == 1


def test_a_turn_counts_when_every_call_of_it_is_answered() -> None:
    begun = tally(
        answer(1, end=False),
        ToolUseEvent(tool_name="Read", tool_use_id="a", turn=1),
        call(1, "b"),
    )
    half = begun.add(result(1, "a"))
    whole = half.add(result(1, "b"))

    assert (begun.turns, begun.open_calls) == (0, frozenset({"a", "b"}))
    assert (half.turns, half.open_calls) == (0, frozenset({"b"}))
    assert (whole.turns, whole.open_calls) == (1, frozenset())


def test_a_call_made_again_after_a_crash_closes_the_one_that_was_cut_off() -> None:
    total = tally(call(1, "a"), call(1, "a"), result(1, "a"))

    assert (total.turns, total.open_calls) == (1, frozenset())


def test_messages_are_counted_one_for_each_that_ended() -> None:
    asked = describe(UserInput(), "do it")
    total = tally(
        asked,
        answer(1, end=False),
        call(1, "a"),
        result(1, "a"),
        AssistantEvent(content="do", partial=True, end=True),
        answer(2, end=False),
    )

    assert total.messages == 2
    assert total.add(answer(2)).messages == 3


def test_pieces_of_an_answer_count_for_nothing() -> None:
    piece = AssistantEvent(content="half", partial=True, turn=1, end=True)

    assert tally(piece) == Tally()


MORE = Usage(input_tokens=100, output_tokens=3, cost_microusd=MicroUsd(7))
NEXT_OWNER = describe(ExecutionStarted(worker="w"))


def piece_of(usage: Usage) -> AssistantEvent:
    """A piece of an answer on its way, with what that has used by then."""
    return AssistantEvent(partial=True, usage=usage, turn=1)


def test_what_an_answer_on_its_way_uses_counts_once_when_it_never_comes() -> None:
    asked = tally(piece_of(SOME), piece_of(MORE))

    assert asked.usage == NOTHING_USED
    assert asked.cut_off.usage == MORE
    lost = asked.add(NEXT_OWNER)
    assert (lost.usage, lost.usage_before) == (MORE, MORE)
    assert lost.add(NEXT_OWNER).usage == lost.cut_off.usage == MORE
    assert lost.add(describe(Complete(usage=SOME))).usage == MORE + SOME


@pytest.mark.parametrize(
    ("heard", "used"),
    [
        (AssistantEvent(content="x", usage=SOME, turn=1, index=0), SOME),
        (AssistantEvent(content="x", usage=SOME, turn=1, index=0, end=True), SOME),
        (AssistantEvent(usage=SOME, turn=1), SOME),
        (ErrorEvent(message="refused", code="rate_limited"), NOTHING_USED),
        (ErrorEvent(message="broke", extra={"usage": {"input_tokens": 1}}), Usage(input_tokens=1)),
        (describe(Complete(usage=SOME)), SOME),
    ],
)
def test_what_an_answer_is_taken_to_use_gives_way_to_what_is_known(
    heard: Event, used: Usage
) -> None:
    told = tally(piece_of(MORE), heard)

    assert told.usage == used
    assert told.add(NEXT_OWNER).usage == told.cut_off.usage == used


def test_the_answer_is_the_last_text_unless_the_runtime_sums_up() -> None:
    told = tally(answer(1, "first"), answer(2, "last"), answer(3, None))

    assert told.answer == "last"
    assert told.add(describe(Complete())).answer == "last"
    assert told.add(describe(Complete(summary="in short"))).answer == "in short"


def test_usage_adds_up_unless_the_runtime_says_the_whole() -> None:
    told = tally(answer(1), answer(2))
    whole = Usage(input_tokens=99)

    assert told.usage == SOME + SOME
    assert told.add(describe(Complete())).usage == SOME + SOME
    assert told.add(describe(Complete(usage=whole))).usage == whole


def test_the_runtime_session_is_known_from_init_on() -> None:
    started = tally(describe(Init(runtime="scripted", runtime_session_id="abc")))

    assert started.runtime_session_id == "abc"
    assert started.add(describe(Init(runtime="scripted"))).runtime_session_id == "abc"


def test_complete_is_success_and_keeps_its_stop_reason() -> None:
    ended = tally(describe(Complete(stop_reason="end_turn"))).outcome

    assert ended == Outcome(exit_reason=ExitReason.SUCCESS, stop_reason="end_turn")
    assert ended is not None
    assert ended.status is JobStatus.COMPLETED


@pytest.mark.parametrize(
    ("code", "exit_reason", "status"),
    [
        ("timeout", ExitReason.TIMEOUT, JobStatus.FAILED),
        ("cancelled", ExitReason.CANCELLED, JobStatus.CANCELLED),
        ("max_turns", ExitReason.MAX_TURNS, JobStatus.FAILED),
        ("limit", ExitReason.LIMIT, JobStatus.FAILED),
        ("overloaded", ExitReason.ERROR, JobStatus.FAILED),
        (None, ExitReason.ERROR, JobStatus.FAILED),
    ],
)
def test_an_error_is_never_success_and_its_code_says_which_end(
    code: str | None, exit_reason: ExitReason, status: JobStatus
) -> None:
    ended = tally(ErrorEvent(message="broke", code=code)).outcome

    assert ended == Outcome(exit_reason=exit_reason, error="broke", error_code=code)
    assert ended is not None
    assert ended.status is status


def test_no_error_code_means_success() -> None:
    assert ExitReason.SUCCESS not in EXIT_OF_CODE.values()
    assert SILENT_END.status is JobStatus.FAILED


def test_other_system_events_change_nothing() -> None:
    assert tally(describe(Warned(code="odd"), "hm", turn=7)) == Tally()


turns_of_calls = st.lists(st.integers(0, 3), max_size=6)


@given(turns_of_calls, st.data())
def test_a_record_cut_off_anywhere_counts_exactly_the_turns_that_are_whole(
    shape: list[int], data: st.DataObject
) -> None:
    events: list[Event] = []
    turn_ends: list[int] = []
    for turn, calls in enumerate(shape, start=1):
        names = [f"{turn}-{number}" for number in range(calls)]
        events.append(answer(turn, end=not names))
        for name in names:
            last = name == names[-1]
            events.append(ToolUseEvent(tool_name="Bash", tool_use_id=name, turn=turn, end=last))
        events.extend(result(turn, name) for name in data.draw(st.permutations(names)))
        turn_ends.append(len(events))

    for cut in range(len(events) + 1):
        part = tally(*events[:cut])
        assert part.turns == sum(end <= cut for end in turn_ends)
        assert part.outcome is None

    assert tally(*events).usage == sum((SOME for _ in shape), start=NOTHING_USED)
