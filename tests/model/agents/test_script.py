"""Scripts: which steps make up which turn, however deep and often they repeat."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.agents.script import (
    End,
    Fail,
    Repeat,
    Say,
    Script,
    Sleep,
    Spend,
    Step,
    Think,
    Turn,
    UseTool,
    compile_script,
    ends_job,
)
from nightherd.model.usage import Usage

SAY, ASK = Say("a"), Say("b")
THINK = Think("hm")
TOOL = UseTool("Bash", {"command": "true"})
SLEEP = Sleep(timedelta(seconds=1))
USAGE = Spend(Usage(input_tokens=1))
FAIL = Fail("x", "broke")
END = End()


def turns(*steps: Step) -> list[Turn]:
    return list(compile_script(steps).turns_from(0))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((), []),
        ((SAY,), [(SAY,)]),
        ((SAY, ASK), [(SAY,), (ASK,)]),
        ((SAY, TOOL), [(SAY, TOOL)]),
        ((TOOL, TOOL), [(TOOL,), (TOOL,)]),
        ((TOOL, SAY), [(TOOL,), (SAY,)]),
        ((THINK, SLEEP, SAY, TOOL, SAY), [(THINK, SLEEP, SAY, TOOL), (SAY,)]),
        ((SAY, SLEEP, TOOL), [(SAY,), (SLEEP, TOOL)]),
        ((SAY, USAGE, SAY, TOOL, USAGE), [(SAY, USAGE), (SAY, TOOL, USAGE)]),
        ((SAY, USAGE, USAGE), [(SAY, USAGE, USAGE)]),
        ((SAY, THINK, USAGE, ASK), [(SAY,), (THINK, USAGE, ASK)]),
        ((USAGE, SAY), [(USAGE, SAY)]),
        ((SAY, FAIL), [(SAY,), (FAIL,)]),
        ((THINK, FAIL, USAGE, SAY), [(THINK, FAIL, USAGE), (SAY,)]),
        ((SAY, SLEEP), [(SAY,), (SLEEP,)]),
        ((SAY, END, ASK), [(SAY, END), (ASK,)]),
        ((TOOL, END, USAGE, ASK), [(TOOL, END, USAGE), (ASK,)]),
        ((THINK, END, SAY), [(THINK, END), (SAY,)]),
        ((END, SAY), [(END,), (SAY,)]),
        ((Repeat(2, (SAY, END)), END), [(SAY, END), (SAY, END), (END,)]),
        ((Repeat(2, (SAY, TOOL)),), [(SAY, TOOL), (SAY, TOOL)]),
        ((SAY, Repeat(1, (TOOL,))), [(SAY,), (TOOL,)]),
        ((THINK, Repeat(1, (SAY,)), USAGE), [(THINK,), (SAY,), (USAGE,)]),
        ((Repeat(0, (SAY,)), Repeat(5, ()), ASK), [(ASK,)]),
        ((SAY, Repeat(0, (ASK,)), USAGE), [(SAY,), (USAGE,)]),
        ((Repeat(2, (SAY, Repeat(2, (TOOL,)))),), [(SAY,), (TOOL,), (TOOL,)] * 2),
    ],
)
def test_a_turn_is_one_answer_and_its_tool_call(
    steps: tuple[Step, ...], expected: list[Turn]
) -> None:
    assert turns(*steps) == expected


def test_a_job_ends_with_the_turn_that_has_the_step() -> None:
    assert [ends_job(turn) for turn in (*turns(SAY, END, TOOL, END, USAGE, ASK), None)] == [
        True,
        True,
        False,
        False,
    ]


actions: st.SearchStrategy[Step] = st.sampled_from([SAY, ASK, THINK, TOOL, SLEEP, USAGE, FAIL, END])
scripts: st.SearchStrategy[list[Step]] = st.recursive(
    st.lists(actions, max_size=6),
    lambda inner: st.lists(
        actions | st.builds(lambda n, body: Repeat(n, tuple(body)), st.integers(0, 3), inner),
        max_size=5,
    ),
    max_leaves=6,
)


def play_out(steps: list[Step]) -> list[Turn]:
    """The turns with every repeat played out: each stretch between repeats is cut by itself."""
    played: list[Turn] = []
    stretch: list[Step] = []
    for step in steps:
        if isinstance(step, Repeat):
            played += turns(*stretch) + play_out(list(step.steps)) * step.count
            stretch = []
        else:
            stretch.append(step)
    return played + turns(*stretch)


@given(scripts)
def test_a_repeat_is_its_turns_so_many_times(steps: list[Step]) -> None:
    script = compile_script(steps)
    expected = play_out(steps)

    assert script.turn_count == len(expected)
    assert list(script.turns_from(0)) == expected


@given(scripts)
def test_a_turn_is_the_same_whoever_asks(steps: list[Step]) -> None:
    script = compile_script(steps)
    whole = list(script.turns_from(0))

    assert [script.turn(number) for number in range(script.turn_count)] == whole
    assert script.turn(script.turn_count) is None
    for start in range(script.turn_count + 2):
        assert list(script.turns_from(start)) == whole[start:]


@given(scripts)
def test_no_turn_has_more_than_one_answer_call_or_end(steps: list[Step]) -> None:
    for turn in compile_script(steps).turns_from(0):
        assert turn
        assert sum(isinstance(step, Say) for step in turn) <= 1
        assert sum(isinstance(step, UseTool | Fail) for step in turn) <= 1


def test_a_script_of_any_length_is_ready_at_once() -> None:
    big = 10**9
    script = compile_script([Repeat(big, (SAY, Repeat(big, (TOOL,)))), ASK])
    rounds = big * (big + 1)

    assert script.turn_count == rounds + 1
    assert script.turn(rounds - 1) == (TOOL,)
    assert list(script.turns_from(rounds - 1)) == [(TOOL,), (ASK,)]
    assert list(islice(script.turns_from(big), 3)) == [(TOOL,), (SAY,), (TOOL,)]


def test_an_empty_script_has_no_turns() -> None:
    assert Script(()).turn(0) is None
    assert list(Script(()).turns_from(0)) == []
