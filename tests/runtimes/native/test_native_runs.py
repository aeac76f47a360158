"""The turn loop: what it says, in which order, and what it makes of answers that are not what they should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import anyio
import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, ThinkingPart
from pydantic_ai.usage import RequestUsage

from nightherd.model.checkpoints.checkpoint import TriggerPoint
from nightherd.model.children import SpawnCall, SpawnResult
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    is_terminal,
)
from nightherd.model.journal.system import Complete, Context, Init, Suspension
from nightherd.model.limits.limits import LimitName, Shortfall
from nightherd.model.secrets import find_secrets
from nightherd.model.usage import Usage
from nightherd.runtimes.native.conversation import recall
from nightherd.runtimes.native.runtime import NativeRuntime
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome
from runtimes.heard import error_of, payloads
from runtimes.native.native_stage import (
    QUICK,
    SECRET,
    NativeStage,
    Record,
    Replies,
    bash,
    calls,
    of_type,
    results,
    says,
    subtypes,
)
from runtimes.stage import is_running, is_written, until

KIB = 1024


def payload(events: list[Event], kind: type[Any]) -> Any:
    """The only payload of a kind."""
    (found,) = payloads(events, kind)
    return found


def test_an_answer_without_calls_ends_the_run(stage: NativeStage) -> None:
    events = stage.run(Replies(says("All done.")))

    (answer,) = of_type(events, AssistantEvent)
    assert (answer.content, answer.turn, answer.end) == ("All done.", 1, True)
    complete = payload(events, Complete)
    assert complete.stop_reason == "end_turn"
    assert complete.usage == answer.usage == Usage(input_tokens=10, output_tokens=5)
    assert [is_terminal(event) for event in events] == [False] * (len(events) - 1) + [True]


def test_the_run_says_who_it_is(stage: NativeStage) -> None:
    init = payload(stage.run(Replies(says("x"))), Init)

    assert (init.runtime, init.model) == ("native", "replies")
    assert init.working_directory == str(stage.directory)
    assert {"Bash", "Read", "Write", "Edit"} <= set(init.tools)


def test_a_call_is_given_out_before_it_is_made_and_its_result_before_the_next(
    stage: NativeStage,
) -> None:
    one, two = stage.directory / "one", stage.directory / "two"
    model = Replies(
        calls(("Bash", {"command": "touch one"}), ("Bash", {"command": "touch two"})), says("done")
    )

    async def watch() -> list[tuple[str, bool, bool]]:
        events = NativeRuntime(model=model, grace=QUICK).execute(stage.request())
        return [
            (type(event).__name__, one.exists(), two.exists())  # as it is when the event comes
            async for event in events
        ]

    seen = anyio.run(watch)

    assert [line for line in seen if line[0].startswith("Tool")] == [
        ("ToolUseEvent", False, False),
        ("ToolUseEvent", False, False),
        ("ToolResultEvent", True, False),
        ("ToolResultEvent", True, True),
    ]


def test_the_model_is_sent_what_the_record_says_and_nothing_else(stage: NativeStage) -> None:
    record, model = Record(), Replies(bash("echo hi; exit 3"), bash("echo $((1+1))"), says("done"))

    events = stage.run(model, stage.request(record))

    record.add(*events[:-1])
    sent = ModelMessagesTypeAdapter.validate_json(model.asked[-1])
    rebuilt = recall(record.events, find_secrets({})).messages
    assert ModelMessagesTypeAdapter.dump_json(rebuilt[:-1]) == ModelMessagesTypeAdapter.dump_json(
        sent
    )


def test_constants_are_on_record_once_and_every_answer_names_them(stage: NativeStage) -> None:
    record = Record()
    record.add(*stage.run(Replies(bash("true"), says("done")), stage.request(record)))

    again = stage.run(Replies(says("again")), stage.request(record, agent={}))

    kinds = [context.kind for context in payloads(record.events, Context)]
    assert kinds == ["instructions", "tools", "setup"]
    assert payloads(again, Context) == []
    setup = payloads(record.events, Context)[-1]
    first_lines = [line for line in of_type(record.events, AssistantEvent) if line.index == 0]
    assert {line.extra["setup"] for line in first_lines} == {setup.hash}
    assert str(stage.directory) in payloads(record.events, Context)[0].body


def test_an_agent_with_a_system_prompt_is_told_that_alone(stage: NativeStage) -> None:
    events = stage.run(Replies(says("x")), stage.request(agent={"system_prompt": "Be brief."}))

    assert payloads(events, Context)[0].body == "Be brief."


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("Teleport", {}), "there is no tool Teleport"),
        (("Bash", "{not json"), "the input of Bash is not a JSON object"),
        (("Bash", '["a"]'), "the input of Bash is not a JSON object"),
        (("Bash", {}), "Bash needs the input 'command'"),
        (("Read", {"file_path": 7}), "'file_path' must be a text"),
        (("Read", {"file_path": "absent.txt"}), "there is no file absent.txt"),
    ],
)
def test_a_call_that_cannot_be_made_is_answered(
    stage: NativeStage, call: tuple[str, Any], told: str
) -> None:
    model = Replies(calls(call), says("I see."))

    (result,) = results(events := stage.run(model))

    assert result.success is False
    assert told in (result.error or "")
    assert told in str(model.conversations[1][-1].parts[0])
    assert payload(events, Complete)


def test_two_hundred_calls_in_one_answer_are_each_made_once(stage: NativeStage) -> None:
    wanted = [("Write", {"file_path": f"f{n}", "content": str(n)}) for n in range(200)]
    model = Replies(calls(*wanted), says("done"))

    events = stage.run(model)

    assert [result.tool_use_id for result in results(events)] == [f"call-{n}" for n in range(200)]
    assert all(result.success for result in results(events))
    assert len(list(stage.directory.iterdir())) == 200
    (_, answer, request) = model.conversations[1]
    assert len(answer.parts) == len(request.parts) == 200


@pytest.mark.parametrize(
    "nothing", [ModelResponse([]), ModelResponse([ThinkingPart("hm")])], ids=["empty", "thoughts"]
)
def test_an_answer_with_nothing_in_it_fails_and_is_no_history(
    stage: NativeStage, nothing: ModelResponse
) -> None:
    record = Record()
    reply = replace(nothing, usage=RequestUsage(input_tokens=7))

    events = stage.run(Replies(reply), stage.request(record))

    error = error_of(events)
    assert error.code == "empty_answer"
    assert error.extra == {"recoverable": True, "usage": {"input_tokens": 7}}
    record.add(*events)
    assert len(recall(record.events, find_secrets({})).messages) == 1


@pytest.mark.parametrize(
    ("reason", "code"), [("content_filter", "refused"), ("length", "output_limit")]
)
def test_an_answer_that_was_broken_off_is_an_error(
    stage: NativeStage, reason: Any, code: str
) -> None:
    error = error_of(stage.run(Replies(replace(says("As I was"), finish_reason=reason))))

    assert error.code == code
    assert "recoverable" not in (error.extra or {})


@pytest.mark.parametrize("args", ["", '{"command": "touch b', '{"command": "touch b"}'])
def test_the_call_in_which_an_answer_was_cut_off_is_not_made(stage: NativeStage, args: str) -> None:
    """Those before it are whole: they are made, and the model is told about the last."""
    cut = replace(calls(("Bash", {"command": "touch a"}), ("Bash", args)), finish_reason="length")
    model = Replies(cut, says("done"))

    events = stage.run(model)

    first, last = results(events)
    assert (first.error, last.success) == (None, False)
    assert "cut off at its maximum length" in (last.error or "")
    assert (stage.directory / "a").exists()
    assert not (stage.directory / "b").exists()
    assert payload(events, Complete)


def test_a_tool_that_hangs_is_stopped_and_the_run_goes_on(stage: NativeStage) -> None:
    events = stage.run(Replies(bash("sleep 600", timeout=200), says("it hung")))

    (result,) = results(events)
    assert "ran longer than" in (result.error or "")
    assert payload(events, Complete)


def test_of_a_flood_of_output_the_ends_are_kept(stage: NativeStage) -> None:
    """A gigabyte: seconds, and no more memory or journal than for a page."""
    size = 1024 * 1024 * 1024
    flood = f"echo first; yes | head -c {size}; echo last"
    before = getrusage(RUSAGE_SELF).ru_maxrss

    (result,) = results(stage.run(Replies(bash(flood, timeout=100_000), says("wet"))))

    assert (getrusage(RUSAGE_SELF).ru_maxrss - before) * KIB < size // 8
    text = str(result.result)
    assert text.startswith("first\n")
    assert text.endswith("last\n")
    assert len(text) < 64 * 1024


def test_what_is_not_allowed_is_denied_and_said_so(stage: NativeStage, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    model = Replies(
        calls(
            ("Write", {"file_path": str(outside), "content": "x"}),
            ("Write", {"file_path": "inside.txt", "content": "x"}),
        ),
        says("done"),
    )

    events = stage.run(model, stage.request(agent={"permission_mode": "acceptEdits"}))

    assert subtypes(events)[-7:] == [
        "ToolUseEvent",
        "ToolUseEvent",
        "denied",
        "ToolResultEvent",
        "ToolResultEvent",
        "AssistantEvent",
        "complete",
    ]
    refused, made = results(events)
    assert (refused.success, made.success) == (False, True)
    assert not outside.exists()
    assert model.conversations[1][-1].parts[0].outcome == "denied"  # type: ignore[union-attr]


def test_tools_that_an_agent_does_not_have_are_not_offered(stage: NativeStage) -> None:
    agent = {"tools": ("Read",), "denied_tools": ()}

    events = stage.run(Replies(says("x")), stage.request(agent=agent))

    assert payload(events, Init).tools == ["Read"]
    (tools,) = [one for one in payloads(events, Context) if one.kind == "tools"]
    assert [tool["name"] for tool in tools.body] == ["Read"]


def test_secrets_are_masked_before_the_model_sees_them(stage: NativeStage) -> None:
    model = Replies(bash("printenv ANTHROPIC_API_KEY"), says("done"))

    events = stage.run(model)

    assert results(events)[0].result == "[secret:ANTHROPIC_API_KEY]\n"
    assert SECRET.encode() not in model.asked[1]


def test_the_loop_says_where_it_is(stage: NativeStage) -> None:
    points: list[str] = []

    async def note(point: TriggerPoint) -> None:
        points.append(point.value)

    stage.run(Replies(bash("true"), says("done")), stage.request(at=note))

    assert points == ["pre_turn", "post_llm", "post_tools", "pre_turn", "post_llm"]


def test_it_says_so_too_when_it_fails(stage: NativeStage) -> None:
    points: list[str] = []

    async def note(point: TriggerPoint) -> None:
        points.append(point.value)

    stage.run(Replies(ModelResponse([])), stage.request(at=note))

    assert points == ["pre_turn", "on_error"]


def test_at_every_point_the_record_holds_all_that_was_done(stage: NativeStage) -> None:
    """What the reader has been given is on record: nothing is announced before it is."""
    given: list[str] = []
    at: list[tuple[str, list[str]]] = []

    async def note(point: TriggerPoint) -> None:
        at.append((point.value, list(given)))

    async def read() -> None:
        runtime = NativeRuntime(model=Replies(bash("true"), says("done")), grace=QUICK)
        async for event in runtime.execute(stage.request(at=note)):
            given.extend(subtypes([event]))

    anyio.run(read)

    assert [names[-1] for _, names in at] == [
        "context",
        "ToolUseEvent",
        "ToolResultEvent",
        "ToolResultEvent",
        "AssistantEvent",
    ]


def test_before_every_request_it_asks_whether_it_may_spend(stage: NativeStage) -> None:
    asked: list[tuple[int | None, int]] = []

    async def allow(microusd: int | None, tokens: int) -> None:
        asked.append((microusd, tokens))

    stage.run(Replies(bash("true"), says("done")), stage.request(may_spend=allow))

    assert len(asked) == 2
    assert all(tokens >= 16_384 for _, tokens in asked)


def test_a_run_that_may_not_spend_asks_no_model(stage: NativeStage) -> None:
    model, points = Replies(says("never")), list[str]()
    no = Suspension(reason=SuspendReason.LIMIT, message="spend: $0.50 of $0.50", code="spend")

    async def note(point: TriggerPoint) -> None:
        points.append(point.value)

    async def refuse(microusd: int | None, tokens: int) -> Shortfall:
        return Shortfall(stop=no, name=LimitName.SPEND)

    events = stage.run(model, stage.request(may_spend=refuse, at=note))

    assert model.asked == []
    assert points[:2] == ["pre_turn", "on_suspend"]
    warning, error = events[-2:]
    assert isinstance(warning, SystemEvent)
    assert warning.content == no.message
    assert isinstance(error, ErrorEvent)
    assert (error.code, error.message) == ("limit", no.message)


def test_a_job_takes_no_more_turns_than_it_may(stage: NativeStage) -> None:
    model = Replies(bash("true"), bash("true"), says("never"))

    events = stage.run(model, stage.request(agent={"max_turns": 3}, job_turns=1, session_turns=1))

    assert error_of(events).code == "max_turns"
    assert [line.turn for line in of_type(events, ToolUseEvent)] == [2, 3]


def test_cancelling_ends_what_the_tools_have_started(stage: NativeStage) -> None:
    points: list[str] = []

    async def note(point: TriggerPoint) -> None:
        points.append(point.value)

    command = "echo $$ > pid; exec sleep 600"
    runtime = NativeRuntime(model=Replies(bash(command)), grace=QUICK)

    async def consume() -> None:
        async for _ in runtime.execute(stage.request(at=note)):
            pass

    async def cancel() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await until(lambda: is_written(stage.directory / "pid"))
            tasks.cancel_scope.cancel()

    anyio.run(cancel)

    assert points[-1] == "on_cancel"
    assert not is_running(int((stage.directory / "pid").read_text()))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sleep 600 > /dev/null 2>&1 & echo $! > pid", id="a child"),
        pytest.param(
            "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1; done' >/dev/null 2>&1 & "
            "while [ ! -s pid ]; do sleep 0.01; done",
            id="a daemon that is deaf to SIGTERM",
        ),
    ],
)
def test_what_is_left_in_the_background_has_ended_before_the_last_event(
    stage: NativeStage, command: str
) -> None:
    async def read() -> list[bool]:
        runtime = NativeRuntime(model=Replies(bash(command), says("done")), grace=QUICK)
        return [
            is_running(int((stage.directory / "pid").read_text()))
            async for event in runtime.execute(stage.request())
            if is_terminal(event)
        ]

    assert anyio.run(read) == [False]


def test_an_agent_without_a_place_to_work_fails(stage: NativeStage) -> None:
    agent = {"working_directory": str(stage.directory / "absent")}

    assert error_of(stage.run(Replies(), stage.request(agent=agent))).code == "working_directory"


def test_a_result_belongs_to_the_turn_of_its_call(stage: NativeStage) -> None:
    events = stage.run(Replies(bash("true"), bash("true"), says("x")), stage.request(job_turns=4))

    lines = of_type(events, ToolUseEvent, ToolResultEvent)
    assert [line.turn for line in lines] == [5, 5, 6, 6]


def test_an_agent_that_may_has_others_do_a_part_of_its_work(stage: NativeStage) -> None:
    asked: list[SpawnCall] = []

    async def spawn(call: SpawnCall) -> SpawnResult:
        asked.append(call)
        return SpawnResult(success=True, answer="It is green.")

    model = Replies(calls(("Spawn", {"agent": "tester", "prompt": "Is it?"})), says("It is."))
    agent = {"permission_mode": "default", "allowed_tools": ("Spawn",)}

    events = stage.run(model, stage.request(agent=agent, spawn=spawn))

    assert asked == [SpawnCall(call_id="call-0", agent="tester", prompt="Is it?")]
    assert [(one.success, one.result) for one in results(events)] == [(True, "It is green.")]


def test_an_agent_that_was_not_told_so_has_no_others(stage: NativeStage) -> None:
    assert "Spawn" not in payload(stage.run(Replies(says("x"))), Init).tools


def test_a_mistake_in_a_tool_is_not_taken_for_a_failure_of_the_model(stage: NativeStage) -> None:
    with pytest.raises(ValueError, match="a mistake"):
        stage.run(Replies(calls(("Read", {}))), tools=[Broken()])


@dataclass(frozen=True)
class Broken:
    """A tool with a mistake in it."""

    name: str = "Read"
    starts_processes: bool = False
    is_read_only: bool = False

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        raise ValueError("a mistake")
