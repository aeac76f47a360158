"""What the journal has and a transcript lacks: each thing is mentioned once, in words for the model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from nightherd.model.jobs.job import SuspendReason
from nightherd.model.jobs.repeat import INTERRUPTED_CALL
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
    ExecutionStarted,
    Init,
    Recovered,
    Resumed,
    Suspension,
    SystemSubtype,
    ToolProgress,
)
from nightherd.runtimes.claude.memory import Memory, missing_from_transcript, read_memory
from nightherd.runtimes.claude.opening import FAILED, INTERRUPTED, Why, is_note, why_continued

INIT = describe(Init(runtime="cli", runtime_session_id="s-1"))
ANSWER = AssistantEvent(content="I begin", uuid="a-1", end=True)


def line(kind: str, uuid: str, parent: str | None, *blocks: Any, **more: Any) -> bytes:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    message = {"role": kind, "content": content, **more.pop("message", {})}
    entry = {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, **more}
    return json.dumps(entry).encode() + b"\n"


def use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}}


def answer(name: str, content: str = "x") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def failure(uuid: str, parent: str) -> bytes:
    """The text of an API error, as Claude writes it into the transcript."""
    return line("assistant", uuid, parent, "API Error: 529", message={"model": "<synthetic>"})


def call(name: str, **more: Any) -> ToolUseEvent:
    return ToolUseEvent(
        tool_name="Bash", tool_use_id=name, input={"command": f"run {name}"}, **more
    )


def result(name: str, **more: Any) -> ToolResultEvent:
    return ToolResultEvent(
        tool_use_id=name, result=f"result of {name}", success=True, uuid=f"u-{name}", **more
    )


def cut_off(name: str) -> ToolResultEvent:
    return ToolResultEvent(tool_use_id=name, success=False, error=INTERRUPTED_CALL)


def missing(
    history: Iterable[Any], transcript: Iterable[bytes], *, keeps: bool = True
) -> str | None:
    return missing_from_transcript(history, read_memory(transcript, is_note), lambda: keeps)


def test_result_that_the_transcript_lacks_is_mentioned() -> None:
    history = [call("one"), result("one"), call("two"), result("two")]
    lines = [
        line("user", "q", None, "go"),
        line("assistant", "c", "q", use("one")),
        line("user", "r", "c", answer("one")),
        b"{half",
    ]

    text = missing(history, lines)

    assert text is not None
    assert "result of two" in text
    assert "run two" in text
    assert "run one" not in text


def test_answer_that_the_transcript_lacks_is_mentioned() -> None:
    answers = [
        AssistantEvent(content="I begin", uuid="1"),
        AssistantEvent(content="half a th", uuid="2", partial=True),
        AssistantEvent(content="of a subagent", uuid="3", parent_tool_use_id="one"),
        AssistantEvent(content="the [secret:KEY]", uuid="4"),
        AssistantEvent(content="I continue", uuid="5"),
    ]
    lines = [
        line("assistant", "a", None, "I begin"),
        # The transcript has the secret itself: a masked text is known by the name of its line.
        line("assistant", "4", "a", "the real key"),
    ]

    text = missing(answers, lines)

    assert text is not None
    assert text.endswith("\n\nI continue")
    assert not {"I begin", "half a th", "of a subagent", "the [secret:KEY]"} & set(
        text.split("\n\n")
    )


def test_call_that_the_transcript_lacks_is_mentioned_as_cut_off() -> None:
    history = [ANSWER, call("one"), cut_off("one")]

    text = missing(history, [line("assistant", "a-1", None, "I begin")])

    assert text is not None
    assert "run one" in text
    assert "outcome is unknown" in text


@pytest.mark.parametrize("keeps", [True, False])
def test_open_call_of_the_transcript_is_mentioned_where_claude_drops_it(keeps: bool) -> None:
    lines = [line("user", "q", None, "go"), line("assistant", "c", "q", use("one"))]

    text = missing([call("one"), cut_off("one")], lines, keeps=keeps)

    assert (text is None) == keeps
    assert keeps or "run one" in str(text)


def test_result_takes_the_place_of_what_claude_says_about_an_open_call() -> None:
    lines = [
        line("user", "q", None, "go"),
        line("assistant", "c", "q", use("one"), use("two")),
        line("user", "r", "c", answer("one", "[Tool call interrupted: ..."), answer("two")),
    ]

    text = missing([call("one"), result("one"), call("two"), result("two")], lines)
    assert text is not None
    assert "result of one" in text
    assert "result of two" not in text
    assert missing([call("one"), cut_off("one")], lines) is None


def test_what_a_note_has_mentioned_is_not_mentioned_again_once_it_was_answered() -> None:
    history = [INIT, ANSWER, call("one"), cut_off("one"), call("two"), result("two")]
    first = [line("user", "q", None, "go")]
    note = f"{INTERRUPTED}\n\n{missing(history, first)}"
    told = [*first, line("user", "n", "q", note)]

    assert missing(history, [*told, line("assistant", "a", "n", "I see")]) is None
    assert missing(history, told) == missing(history, first)
    assert missing(history, [*told, failure("e", "n")]) == missing(history, first)


def test_calls_of_subagents_are_not_mentioned() -> None:
    events = [
        call("theirs", parent_tool_use_id="agent"),
        result("theirs", parent_tool_use_id="agent"),
    ]

    assert missing(events, [line("user", "q", None, "go")]) is None


def test_background_tasks_that_ended_with_the_process_are_mentioned_once() -> None:
    events = [
        INIT,
        describe(ToolProgress(task_id="t-1", task="side work")),
        describe(ToolProgress(task_id="t-2", task="a server")),
        describe(ToolProgress(task_id="t-1")),
    ]
    lines = [line("user", "q", None, "go")]

    text = missing(events, lines)
    assert text is not None
    assert "a server (task t-2)" in text
    assert "side work" not in text
    told = [*lines, line("user", "n", "q", text), line("assistant", "a-1", "n", "I see")]
    assert missing([*events, INIT, ANSWER], told) is None
    assert missing([*events, describe(ToolProgress(task_id="t-2"))], lines) is None


def test_unanswered_notes_and_errors_are_left_out() -> None:
    lines = [
        line("user", "q", None, "go"),
        failure("e1", "q"),
        line("user", "n1", "e1", FAILED),
        failure("e2", "n1"),
    ]

    memory = read_memory(lines, is_note)

    assert memory.resume_at == "q"
    assert memory.asked == memory.unanswered == ("go",)


def test_answered_notes_stay_and_so_does_what_somebody_typed() -> None:
    answered = [
        line("user", "q", None, "go"),
        line("user", "n1", "q", INTERRUPTED),
        line("assistant", "a", "n1", "I see"),
    ]
    assert read_memory(answered, is_note).resume_at is None
    assert read_memory(answered, is_note).unanswered == ()

    typed = read_memory([*answered, line("user", "h", "a", "by hand"), failure("e", "h")], is_note)
    assert typed.resume_at == "h"
    assert typed.unanswered == ("by hand",)


def test_lines_that_were_left_out_before_are_not_known() -> None:
    lines = [
        line("user", "q", None, "go"),
        line("user", "n1", "q", f"{INTERRUPTED} (call one)"),
        failure("e1", "n1"),
        line("user", "n2", "q", FAILED),
        line("assistant", "a", "n2", "I see"),
    ]

    memory = read_memory(lines, is_note)

    assert not memory.mentions("(call one)")
    assert memory.mentions(FAILED)


def test_memory_reaches_back_across_a_compaction() -> None:
    lines = [
        line("user", "q", None, "go"),
        line("user", "n", "q", f"{INTERRUPTED} (call one)"),
        line("assistant", "a", "n", "I see"),
        b'{"type":"system","uuid":"b","parentUuid":null,"logicalParentUuid":"a"}',
        line("user", "s", "b", "a summary", isCompactSummary=True),
    ]

    assert read_memory(lines, is_note).mentions("(call one)")


def test_nothing_is_known_of_an_empty_transcript() -> None:
    assert read_memory([], is_note) == Memory()


LOST = describe(ExecutionStarted(worker="w"))
RETRY = describe(Resumed(reason="retry"))
SUSPENDED = describe(Suspension(reason=SuspendReason.RATE_LIMIT))


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([INIT, ANSWER, LOST], Why.INTERRUPTED),
        ([INIT, ANSWER, ErrorEvent(message="", code="killed"), RETRY], Why.INTERRUPTED),
        ([INIT, ANSWER, SUSPENDED, LOST], Why.INTERRUPTED),
        ([INIT, ErrorEvent(message="", code="overloaded"), RETRY], Why.FAILED),
        ([INIT, ANSWER, ErrorEvent(message="", code="network"), SUSPENDED, LOST], Why.FAILED),
        ([INIT, ANSWER, ErrorEvent(message="", code="max_turns"), SUSPENDED, LOST], Why.PAUSED),
        # An interruption that the model was not told of counts until it has answered.
        ([INIT, LOST, INIT, ErrorEvent(message="", code="network"), RETRY], Why.INTERRUPTED),
        ([INIT, LOST, INIT, ANSWER, ErrorEvent(message="", code="network"), RETRY], Why.FAILED),
        ([LOST, describe(Recovered(lost_execution="j.1", reason="gone"))], Why.PAUSED),
    ],
)
def test_why_a_job_is_continued(events: list[Event], why: Why) -> None:
    assert why_continued(events) is why


def test_words_of_users_are_no_answers() -> None:
    asked = SystemEvent(subtype=SystemSubtype.USER_INPUT, content="go", uuid="u")

    assert why_continued([INIT, LOST, INIT, asked, RETRY]) is Why.INTERRUPTED
