"""What a run makes of the record that an earlier one left: nothing is done twice, and nothing is forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)

from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
    payload_of,
)
from nightherd.model.journal.system import Complete, Header, Summary, SystemSubtype
from nightherd.model.secrets import find_secrets
from nightherd.model.sessions.context_window import contextual
from nightherd.runtimes.native.conversation import UNKNOWN_OUTCOME, recall
from nightherd.runtimes.native.decode import TOLD_CUT_OFF
from runtimes.native.native_stage import (
    JOB,
    NOON,
    NativeStage,
    Record,
    Replies,
    calls,
    of_type,
    results,
    says,
)

INTERRUPTED = "interrupted: the worker was lost while this ran, its outcome is unknown"


def messages(record: Record) -> list[Any]:
    return recall(record.events, find_secrets({})).messages


def returns(request: Any) -> list[tuple[str, str]]:
    """The results in a request: the call's id and what was told."""
    return [
        (part.tool_call_id, str(part.content))
        for part in request.parts
        if isinstance(part, ToolReturnPart)
    ]


def until(events: list[Event], kind: type[Any], count: int) -> list[Event]:
    """The events up to and with the `count`-th of a kind: the worker was killed right after it."""
    places = [place for place, event in enumerate(events) if isinstance(event, kind)]
    return events[: places[count - 1] + 1]


def interrupted(call: str) -> ToolResultEvent:
    """What the engine records about a call that was cut off."""
    return ToolResultEvent(
        tool_use_id=call, success=False, error=INTERRUPTED, turn=1, index=0, end=True
    )


def counting(name: str) -> tuple[str, dict[str, str]]:
    return "Bash", {"command": f"echo x >> {name}"}


def test_recorded_results_are_used_and_no_call_is_made_twice(stage: NativeStage) -> None:
    record = Record()
    answer = calls(counting("one"), counting("two"), counting("three"))
    first = stage.run(Replies(answer, says("never heard")), stage.request(record))
    record.add(*until(first, ToolResultEvent, 2), interrupted("call-2"))
    for name in ("one", "two", "three"):
        (stage.directory / name).unlink()

    model = Replies(says("I see."))
    request = stage.request(record, job_turns=1, session_turns=1, is_continued=True)
    events = stage.run(model, request)

    assert list(stage.directory.iterdir()) == []
    (conversation,) = model.conversations
    assert returns(conversation[-1]) == [("call-0", ""), ("call-1", ""), ("call-2", INTERRUPTED)]
    assert [line.turn for line in of_type(events, AssistantEvent)] == [2]


def test_a_killed_run_goes_on_wherever_it_was_killed(stage: NativeStage) -> None:
    """Whatever line was the last one written, the next run can go on and ends."""
    record = Record()
    model = Replies(calls(counting("a"), text="Trying."), calls(counting("b")), says("done"))
    events = stage.run(model, stage.request(record))

    for length in range(len(events)):
        past = Record()
        past.add(*events[:length])
        answered = {line.tool_use_id for line in results(past.events)}
        called = {line.tool_use_id for line in of_type(past.events, ToolUseEvent)}
        past.add(*(interrupted(call) for call in sorted(called - answered)))
        rerun = stage.run(Replies(says("done")), stage.request(past, is_continued=True))
        assert isinstance(rerun[-1], SystemEvent), (length, rerun[-1])
        assert isinstance(payload_of(rerun[-1]), Complete)


def test_a_job_that_was_answered_already_is_not_asked_again(stage: NativeStage) -> None:
    record = Record()
    record.add(*stage.run(Replies(says("All done.")), stage.request(record))[:-1])
    model = Replies()

    events = stage.run(model, stage.request(record, job_turns=1, is_continued=True))

    assert model.asked == []
    assert isinstance(events[-1], SystemEvent)
    assert isinstance(payload_of(events[-1]), Complete)


def test_what_had_arrived_of_an_answer_is_offered_to_the_next_turn(stage: NativeStage) -> None:
    record = Record()
    record.add(
        AssistantEvent(content="First I will look ", partial=True, turn=1),
        AssistantEvent(content="at the build.", partial=True, turn=1),
    )
    model = Replies(says("It is green."))

    events = stage.run(model, stage.request(record, is_continued=True))

    (conversation,) = model.conversations
    prompt, note = conversation[0].parts
    assert isinstance(prompt, UserPromptPart)
    assert isinstance(note, UserPromptPart)
    assert "<partial_cognition>\nFirst I will look at the build.\n" in str(note.content)
    (line,) = [event for event in events if TOLD_CUT_OFF in (getattr(event, "extra", None) or {})]
    assert isinstance(line, SystemEvent)
    assert line.subtype is SystemSubtype.USER_INPUT


def test_it_is_offered_once(stage: NativeStage) -> None:
    record = Record()
    record.add(AssistantEvent(content="I was about to", partial=True, turn=1))
    failing = stage.run(Replies(ModelResponse([])), stage.request(record))
    record.add(*failing)
    model = Replies(says("done"))

    events = stage.run(model, stage.request(record, is_continued=True))

    assert str(model.asked[0]).count("I was about to") == 1
    assert not [event for event in events if TOLD_CUT_OFF in (getattr(event, "extra", None) or {})]


def test_the_calls_of_an_answer_that_never_ended_are_no_history(stage: NativeStage) -> None:
    record = Record()
    record.add(
        AssistantEvent(content="I will delete it.", turn=1, index=0),
        ToolUseEvent(tool_name="Bash", tool_use_id="c1", input={}, turn=1, index=1),
        interrupted("c1"),
    )
    model = Replies(says("What was I saying?"))

    stage.run(model, stage.request(record, is_continued=True))

    ((request,),) = model.conversations
    assert returns(request) == []
    assert "I will delete it." in str(request.parts[-1])


def test_what_went_wrong_in_between_is_not_part_of_the_conversation(stage: NativeStage) -> None:
    record = Record()
    record.add(ErrorEvent(message="overloaded", code="overloaded"))

    assert len(messages(record)) == 1


def test_earlier_jobs_of_the_session_are_remembered(stage: NativeStage) -> None:
    record = Record("pick a colour")
    record.add(*stage.run(Replies(says("blue")), stage.request(record)))
    record.add(
        describe(Header(id="job-2", agent="n", trigger_type="manual", created_at=NOON)),
        SystemEvent(subtype=SystemSubtype.USER_INPUT, content="which one?", end=True),
    )
    model = Replies(says("it was blue"))

    events = stage.run(model, stage.request(record, session_turns=1))

    (conversation,) = model.conversations
    assert [type(message) for message in conversation] == [
        ModelRequest,
        ModelResponse,
        ModelRequest,
    ]
    contexts = [event for event in events if getattr(event, "subtype", None) == "context"]
    assert len(contexts) == 3, "a journal explains itself: each job has the constants"


def test_what_other_runtimes_recorded_is_understood(stage: NativeStage) -> None:
    record = Record()
    record.add(
        AssistantEvent(content="Looking.", thinking="hm", turn=1, index=0),
        ToolUseEvent(
            tool_name="Read", tool_use_id="t1", input={"file_path": "a"}, index=1, end=True
        ),
        ToolResultEvent(tool_use_id="t1", result="text", success=True, index=0, end=True),
    )

    _, answer, result = messages(record)

    assert [part.part_kind for part in answer.parts] == ["thinking", "text", "tool-call"]
    assert answer.parts[2].args == {"file_path": "a"}
    assert (result.parts[0].tool_name, result.parts[0].content) == ("Read", "text")


def test_a_result_and_an_error_are_both_told(stage: NativeStage) -> None:
    record = Record()
    record.add(
        ToolUseEvent(tool_name="Bash", tool_use_id="t1", input={}, index=0, end=True),
        ToolResultEvent(
            tool_use_id="t1", result="out\n", error="exit code 1", success=False, index=0, end=True
        ),
    )

    returned = messages(record)[-1].parts[0]

    assert (returned.content, returned.outcome) == ("out\n\nexit code 1", "failed")


def test_a_fork_between_call_and_result_has_an_unknown_outcome(stage: NativeStage) -> None:
    record = Record()
    record.add(*until(stage.run(Replies(calls(counting("a")), says("x"))), ToolUseEvent, 1))
    record.add(SystemEvent(subtype=SystemSubtype.USER_INPUT, content="go on", end=True))

    _, _, request = messages(record)

    assert returns(request) == [("call-0", UNKNOWN_OUTCOME)]
    assert isinstance(request.parts[-1], UserPromptPart)


def test_a_record_that_ends_with_a_call_can_be_gone_on_with(stage: NativeStage) -> None:
    record = Record()
    record.add(*until(stage.run(Replies(calls(counting("a")), says("x"))), ToolUseEvent, 1))

    assert returns(messages(record)[-1]) == [("call-0", UNKNOWN_OUTCOME)]


def test_a_summary_stands_for_what_it_covers(stage: NativeStage) -> None:
    record = Record("the first thing")
    model = Replies(calls(counting("a")), calls(counting("b")), says("done"))
    record.add(*stage.run(model, stage.request(record)))
    record.add(describe(Summary(covers_message=3), "They did a."))

    told = list(contextual(record.events))
    summary, answer, *rest = recall(told, find_secrets({})).messages

    assert "They did a." in str(summary.parts[0])
    assert isinstance(answer, ModelResponse)
    assert answer.tool_calls[0].args == {"command": "echo x >> b"}
    assert len(rest) == 2


def test_a_conversation_without_a_record_begins_with_the_prompt(stage: NativeStage) -> None:
    model = Replies(says("x"))

    stage.run(model, stage.request(prompt="do it", history=lambda: iter(())))

    assert model.conversations[0][0].parts[0].content == "do it"  # type: ignore[union-attr]


def test_the_session_is_named_after_its_first_job(stage: NativeStage) -> None:
    named = stage.run(Replies(says("x")))[0]
    resumed = stage.run(Replies(says("x")), stage.request(runtime_session_id="native-old"))[0]

    assert isinstance(named, SystemEvent)
    assert isinstance(resumed, SystemEvent)
    assert (named.extra or {})["runtime_session_id"] == f"native-{JOB}"
    assert (resumed.extra or {})["runtime_session_id"] == "native-old"


@pytest.mark.parametrize("missing", ["0123456789abcdef"])
def test_instructions_that_are_not_on_record_are_an_error(stage: NativeStage, missing: str) -> None:
    record = Record()
    extra = {"request": {"instructions": {"context": missing}}, "part": {}}
    record.add(
        SystemEvent(subtype=SystemSubtype.USER_INPUT, content="x", extra=extra, index=0, end=True)
    )

    error = stage.run(Replies(), stage.request(record))[-1]

    assert isinstance(error, ErrorEvent)
    assert error.code == "unreadable_record"
    assert missing in error.message


def test_an_answer_that_was_too_long_is_one_also_after_a_kill(stage: NativeStage) -> None:
    record = Record()
    cut = replace(says("As I was"), finish_reason="length")
    record.add(*stage.run(Replies(cut), stage.request(record))[:-1])
    model = Replies()

    error = stage.run(model, stage.request(record, job_turns=1, is_continued=True))[-1]

    assert model.asked == []
    assert isinstance(error, ErrorEvent)
    assert error.code == "output_limit"
