"""The scripted runtime: which events a script comes to, in which order, and when anything happens."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta

import anyio
import pytest

from nightherd.model.agents.script import (
    Fail,
    Repeat,
    Say,
    Sleep,
    Spend,
    Step,
    Think,
    UseTool,
    compile_script,
)
from nightherd.model.jobs.job import ExitReason
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    is_terminal,
    payload_of,
)
from nightherd.model.journal.system import Complete, Init
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.ports import Runtime
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from runtimes.heard import tally_of
from runtimes.stage import JOB, Stage, take

SOME = Usage(input_tokens=10, output_tokens=4, cost_microusd=MicroUsd(250))


def test_a_run_opens_with_init_and_closes_with_complete(stage: Stage) -> None:
    runtime: Runtime = ScriptedRuntime()
    assert isinstance(runtime, ScriptedRuntime)

    first, *_, last = stage.play(Say("hello"))

    assert isinstance(first, SystemEvent)
    assert payload_of(first) == Init(
        runtime="scripted",
        runtime_session_id=f"scripted-{JOB}",
        working_directory=str(stage.directory),
        tools=["Bash", "Read", "Write", "Edit", "Glob", "Grep"],
    )
    assert isinstance(last, SystemEvent)
    assert payload_of(last) == Complete(stop_reason="end_turn")


def test_a_session_that_goes_on_keeps_its_runtime_session_id(stage: Stage) -> None:
    first = stage.play(Say("hello"), runtime_session_id="its-own")[0]

    assert isinstance(first, SystemEvent)
    assert payload_of(first) == Init(
        runtime="scripted",
        runtime_session_id="its-own",
        working_directory=str(stage.directory),
        tools=["Bash", "Read", "Write", "Edit", "Glob", "Grep"],
    )


def test_the_lines_of_a_turn_are_one_message_and_one_result(stage: Stage) -> None:
    steps = (Think("hm"), Say("I look"), UseTool("Bash", {"command": "echo seen"}), Spend(SOME))

    events = stage.play(*steps)[1:-1]

    call = f"toolu_{JOB}_1"
    assert events == [
        AssistantEvent(content="I look", thinking="hm", usage=SOME, turn=1, index=0, end=False),
        ToolUseEvent(
            tool_name="Bash",
            tool_use_id=call,
            input={"command": "echo seen"},
            turn=1,
            index=1,
            end=True,
        ),
        ToolResultEvent(tool_use_id=call, result="seen\n", success=True, turn=1, index=0, end=True),
    ]


def test_a_turn_that_only_calls_has_no_answer(stage: Stage) -> None:
    events = stage.play(UseTool("Bash", {"command": "true"}))[1:-1]

    assert [type(event) for event in events] == [ToolUseEvent, ToolResultEvent]
    assert isinstance(events[0], ToolUseEvent)
    assert (events[0].index, events[0].end) == (0, True)


@pytest.mark.parametrize("extra", [Think("hm"), Spend(SOME)])
def test_a_call_with_thought_or_usage_has_a_silent_answer_before_it(
    stage: Stage, extra: Step
) -> None:
    answer, call = stage.play(extra, UseTool("Bash", {"command": "true"}))[1:3]

    assert isinstance(answer, AssistantEvent)
    assert answer.content is None
    assert not answer.end
    assert isinstance(call, ToolUseEvent)
    assert (call.index, call.end) == (1, True)


def test_usage_is_counted_once(stage: Stage) -> None:
    steps = (
        Say("one"),
        Spend(SOME),
        UseTool("Bash", {"command": "true"}),
        Spend(SOME),
        Spend(SOME),
    )

    assert tally_of(stage.play(*steps)).usage == SOME + SOME + SOME


@pytest.mark.parametrize(
    "steps",
    [
        (Say("a"), Sleep(timedelta(microseconds=1))),
        (Say("a"), Think("b")),
        (Repeat(1, (Say("a"),)), Spend(SOME)),
        (UseTool("Bash", {"command": "true"}), Sleep(timedelta())),
    ],
)
def test_every_turn_is_on_record_so_that_none_is_played_twice(
    stage: Stage, steps: tuple[Step, ...]
) -> None:
    turns = compile_script(steps).turn_count

    assert tally_of(stage.play(*steps)).turns == turns == 2
    assert len(stage.play(*steps, session_turns=2)) == 2


def test_turns_are_numbered_by_job_and_by_session(stage: Stage) -> None:
    events = stage.play(*[Say("turn ${turn}")] * 5, session_turns=3, job_turns=1)[1:-1]

    assert [
        (event.turn, event.content) for event in events if isinstance(event, AssistantEvent)
    ] == [
        (2, "turn 4"),
        (3, "turn 5"),
    ]


def test_a_session_at_the_end_of_the_script_says_so(stage: Stage) -> None:
    for played in (1, 2, 100):
        _, last = stage.play(Say("only"), session_turns=played)

        assert isinstance(last, SystemEvent)
        assert payload_of(last) == Complete(stop_reason="script_finished")


def test_a_call_is_announced_before_it_is_made_and_made_only_when_asked(stage: Stage) -> None:
    touch = [UseTool("Bash", {"command": f"touch {name}"}) for name in ("first", "second")]

    async def watch() -> None:
        events = ScriptedRuntime().execute(stage.request(compile_script(touch)))
        async with aclosing(events):
            _, call = await take(events, 2)
            await anyio.wait_all_tasks_blocked()
            assert isinstance(call, ToolUseEvent)
            assert list(stage.directory.iterdir()) == []

            (result,) = await take(events, 1)
            await anyio.wait_all_tasks_blocked()
            assert isinstance(result, ToolResultEvent)
            assert [path.name for path in stage.directory.iterdir()] == ["first"]

    anyio.run(watch)

    assert [path.name for path in stage.directory.iterdir()] == ["first"]


def test_a_failed_call_does_not_end_the_run(stage: Stage) -> None:
    events = stage.play(UseTool("Bash", {"command": "echo no; exit 3"}), Say("never mind"))

    result = events[2]
    assert isinstance(result, ToolResultEvent)
    assert (result.success, result.result, result.error) == (False, "no\n", "exit code 3")
    assert tally_of(events).answer == "never mind"
    assert tally_of(events).turns == 2


def test_a_tool_there_is_not_is_a_failed_call(stage: Stage) -> None:
    result = stage.play(UseTool("Teleport", {"to": "moon"}))[2]

    assert isinstance(result, ToolResultEvent)
    assert result.success is False
    assert (
        result.error == "there is no tool Teleport; there are Bash, Read, Write, Edit, Glob, Grep"
    )


def test_fail_ends_the_run_with_its_code_and_message(stage: Stage) -> None:
    events = stage.play(Say("so far"), Fail("overloaded", "turn ${turn} broke"), Say("not reached"))

    assert events[-1] == ErrorEvent(message="turn 2 broke", code="overloaded", turn=2)
    assert [is_terminal(event) for event in events] == [False, False, True]


def test_a_turn_that_fails_is_not_history(stage: Stage) -> None:
    events = stage.play(Say("one"), Think("uh"), Fail("timeout", "too slow"), Spend(SOME))
    total = tally_of(events)

    assert events[-2] == AssistantEvent(thinking="uh", usage=SOME, turn=2, index=0, end=False)
    assert (total.turns, total.messages, total.usage) == (1, 1, SOME)
    assert total.outcome is not None
    assert total.outcome.exit_reason is ExitReason.TIMEOUT


def test_values_are_filled_into_every_text(stage: Stage) -> None:
    nested = {"command": "echo ${prompt}", "deep": [{"x": "${repo}"}, ["${inputs.who}"], 7, None]}
    steps = (
        Think("${prompt}?"),
        Say("${prompt}!"),
        UseTool("Nothing", nested),
        Fail("x", "${repo}"),
    )

    events = stage.play(*steps, prompt="go", values={"repo": "a/b", "inputs.who": "me"})

    answer, call, _, failure = events[1:]
    assert isinstance(answer, AssistantEvent)
    assert (answer.thinking, answer.content) == ("go?", "go!")
    assert isinstance(call, ToolUseEvent)
    assert call.input == {"command": "echo go", "deep": [{"x": "a/b"}, ["me"], 7, None]}
    assert isinstance(failure, ErrorEvent)
    assert failure.message == "a/b"


def test_a_prompt_is_text_whatever_it_looks_like(stage: Stage) -> None:
    events = stage.play(Say("${prompt}"), prompt="${turn} ${inputs.none} $(date)")

    assert tally_of(events).answer == "${turn} ${inputs.none} $(date)"


def test_a_job_cannot_name_another_prompt_or_turn(stage: Stage) -> None:
    events = stage.play(Say("${prompt} ${turn}"), values={"prompt": "other", "turn": "99"})

    assert tally_of(events).answer == "go 1"


def test_a_missing_value_is_an_error_and_nothing_of_its_turn_is_done(stage: Stage) -> None:
    steps = (Say("fine"), Say("starting"), UseTool("Bash", {"command": "touch ${inputs.name}"}))

    events = stage.play(*steps)

    assert events[2:] == [
        ErrorEvent(
            message="${inputs.name} is used but this job has no --input name=...",
            code="template",
            turn=2,
        )
    ]
    assert list(stage.directory.iterdir()) == []


def test_an_agent_without_a_script_is_an_error(stage: Stage) -> None:
    async def collect() -> list[Event]:
        return [event async for event in ScriptedRuntime().execute(stage.request(None))]

    assert anyio.run(collect)[1:] == [
        ErrorEvent(message="agent player has no script", code="no_script", turn=1)
    ]


def test_a_missing_working_directory_is_an_error(stage: Stage) -> None:
    stage.directory.rmdir()

    error = stage.play(Say("hello"))[-1]

    assert isinstance(error, ErrorEvent)
    assert error.code == "working_directory"
    assert str(stage.directory) in error.message


def test_a_script_of_a_thousand_million_rounds_starts_at_once_anywhere(stage: Stage) -> None:
    rounds = 10**9
    script = compile_script([Repeat(rounds, (Say("${turn}"), Repeat(rounds, (Say("in"),))))])
    place = 7 * (rounds + 1)

    async def begin() -> list[Event]:
        async with aclosing(
            ScriptedRuntime().execute(stage.request(script, session_turns=place))
        ) as events:
            return await take(events, 3)

    answers = [event.content for event in anyio.run(begin) if isinstance(event, AssistantEvent)]

    assert answers == [str(place + 1), "in"]
