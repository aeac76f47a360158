"""Calls that wait for a person, without a `claude`: which are asked about, what is answered, and the hook that asks."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.model.agents.agent import Agent
from nightherd.model.ids import ExecutionId
from nightherd.model.inbox.review import (
    ApprovalRule,
    Proceed,
    ProposedCall,
    Refuse,
    Replied,
    Verdict,
    Wait,
)
from nightherd.model.journal.event import Event, SystemEvent, ToolUseEvent, describe
from nightherd.model.journal.system import Init, Reviewed
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.capabilities import CLI
from nightherd.runtimes.claude.deferred import (
    ANSWER,
    ASKED,
    NOT_RUN,
    TAIL,
    DeferredCall,
    answer_in,
    deferred_call,
    hook_settings,
    question_in,
)
from nightherd.runtimes.claude.gate import PASS, Gate, GatedCall, Message
from nightherd.runtimes.claude.memory import Memory
from nightherd.runtimes.claude.opening import Opening, completed, records_of
from nightherd.runtimes.claude.review import (
    ASK_TOOL,
    PEOPLE,
    CallReview,
    MessageCalls,
    claudes_question,
    with_review,
)
from nightherd.runtimes.mcp.injected import call_injected
from nightherd.runtimes.protection import permissions_for
from runtimes.claude.claude_stage import JOB
from runtimes.stage import until

CALL = "toolu_1"
PUSH = {"command": "git push"}
PATIENCE_S = 30.0


def request(
    verdict: Verdict | None = None, history: tuple[Event, ...] = (), **agent: Any
) -> tuple[RuntimeRequest, list[ProposedCall]]:
    """A request whose people give this verdict, and what they are asked."""
    asked: list[ProposedCall] = []

    async def review(call: ProposedCall) -> Verdict:
        asked.append(call)
        return verdict or Wait()

    given = {"approvals": (ApprovalRule(tool="Bash(git push:*)"),), **agent}
    made = RuntimeRequest(
        job_id=JOB,
        execution=ExecutionId(f"{JOB}.2"),
        agent=Agent(name="a", runtime=CLI, working_directory="/nowhere", **given),
        prompt="go",
        review=review,
        is_continued=True,
        history=lambda: iter(history),
    )
    return made, asked


def said(*calls: str, message: str = "msg_1") -> list[dict[str, Any]]:
    """What Claude says of one message with these calls, as a stream."""
    start = {"type": "message_start", "message": {"id": message}}
    blocks = [
        {
            "type": "assistant",
            "message": {"id": message, "content": [{"type": "tool_use", "id": call}]},
        }
        for call in calls
    ]
    stop = {"type": "stream_event", "event": {"type": "message_stop"}}
    return [{"type": "stream_event", "event": start}, *blocks, stop]


def decide(
    asked_of: RuntimeRequest,
    tool: str = "Bash",
    input: dict[str, Any] | None = None,
    *,
    calls: tuple[str, ...] = (CALL,),
    agent: str | None = None,
) -> Message | None:
    """What the gate answers about a call on record."""
    review = CallReview(asked_of, permissions_for(asked_of))
    for message in said(*calls):
        review.calls.read(message)
    call = GatedCall(
        call=CALL,
        transcript=Path("t"),
        tool=tool,
        input=PUSH if input is None else input,
        agent=agent,
    )
    return anyio.run(review.decide, call, 0.0, PATIENCE_S)


def decision(answer: Message | None) -> tuple[str, str]:
    assert answer is not None
    facts = answer["hookSpecificOutput"]
    return facts["permissionDecision"], facts["permissionDecisionReason"]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [(Wait(), "defer"), (Proceed(), "allow"), (Refuse(reason="not today"), "deny")],
)
def test_what_a_person_says_is_what_claude_is_told(verdict: Verdict, expected: str) -> None:
    asked_of, asked = request(verdict)

    assert decision(decide(asked_of))[0] == expected
    assert [(one.tool_use_id, one.tool, one.input) for one in asked] == [(CALL, "Bash", PUSH)]


def test_reason_of_a_refusal_is_given_as_it_is() -> None:
    asked_of, _ = request(Refuse(reason="its outcome is unknown"))

    assert decision(decide(asked_of)) == ("deny", "its outcome is unknown")


def test_arguments_of_a_person_replace_those_of_the_agent() -> None:
    asked_of, _ = request(Proceed(input={"command": "git push --dry-run"}))
    answer = decide(asked_of)

    assert answer is not None
    assert answer["hookSpecificOutput"]["updatedInput"] == {"command": "git push --dry-run"}


def test_calls_that_need_nobody_are_left_to_claude() -> None:
    asked_of, asked = request()

    assert decide(asked_of, input={"command": "ls"}) is PASS
    assert decide(asked_of, "AskUserQuestion", {"questions": []}) is PASS
    assert asked == []


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ({"denied_tools": ("Bash",)}, "denied_tools"),
        ({"permission_mode": "plan"}, "plan"),
    ],
)
def test_what_is_denied_is_not_asked_about(agent: dict[str, Any], reason: str) -> None:
    asked_of, asked = request(Proceed(), **agent)
    kind, why = decision(decide(asked_of))

    assert (kind, reason in why, asked) == ("deny", True, [])


def test_only_a_call_that_is_alone_and_the_agents_own_can_wait() -> None:
    asked_of, asked = request()

    assert "alone" in decision(decide(asked_of, calls=(CALL, "toolu_2")))[1]
    assert "sub-agent" in decision(decide(asked_of, agent="helper-1"))[1]
    assert asked == []


def test_calls_of_a_message_are_counted_when_it_is_whole() -> None:
    calls = MessageCalls()
    *begun, stop = said(CALL, "toolu_2")
    counts = []
    for message in begun:
        calls.read(message)
        counts.append(calls.count(CALL, 10.0))
    calls.read({**said("toolu_9", message="msg_2")[1], "parent_tool_use_id": "toolu_0"})
    calls.read(stop)

    assert counts[1:] == [None, None]
    assert calls.count(CALL, 0.0) == 2


def test_calls_of_a_message_that_did_not_come_as_a_stream_are_waited_for() -> None:
    calls = MessageCalls()
    for message in said(CALL, "toolu_2")[1:-1]:
        calls.read(message)

    assert (calls.count(CALL, 0.5), calls.count(CALL, 1.5)) == (None, 2)


def test_answer_to_a_question_is_the_result_of_the_tool_that_asks() -> None:
    asked_of, asked = request(Replied(text="blue"), questions=True)
    answer = decide(asked_of, ASK_TOOL, {"question": "Which?", "options": ["red", "blue"]})
    assert answer is not None
    given = answer["hookSpecificOutput"]["updatedInput"]

    async def call() -> str:
        return (await call_injected(PEOPLE, "ask_person", given)).text

    assert anyio.run(call) == "blue"
    assert [(one.tool, one.question and one.question.options) for one in asked] == [
        ("ask_person", ("red", "blue"))
    ]


def test_tool_that_asks_answers_nothing_by_itself() -> None:
    async def call() -> bool:
        return (await call_injected(PEOPLE, "ask_person", {"question": "Which?"})).is_error

    assert anyio.run(call)
    asked_of, _ = request(questions=True)
    assert "question" in decision(decide(asked_of, ASK_TOOL, {"question": " "}))[1]


SIZES = {
    "questions": [
        {"question": "Which size?", "options": [{"label": "S"}, {"label": "L"}]},
        {"question": "Why?", "options": []},
    ]
}


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("L\nit fits", {"Which size?": "L", "Why?": "it fits"}),
        ("as you like", {"Which size?": "as you like", "Why?": "as you like"}),
    ],
)
def test_several_questions_of_claude_are_answered_at_once(text: str, answers: Any) -> None:
    asked_of, asked = request(Replied(text=text), questions=True)
    answer = decide(asked_of, "AskUserQuestion", SIZES)

    assert answer is not None
    assert answer["hookSpecificOutput"]["updatedInput"] == {**SIZES, "answers": answers}
    assert asked[0].question == claudes_question(SIZES)
    assert asked[0].question is not None
    assert asked[0].question.text == "1. Which size? (S / L)\n2. Why?"


def line(**more: Any) -> bytes:
    return json.dumps(more, separators=(",", ":")).encode() + b"\n"


KEPT = line(
    type="attachment",
    attachment={"type": "hook_deferred_tool", "toolUseID": CALL, "toolName": "Bash"},
)


@pytest.mark.parametrize(
    ("transcript", "found"),
    [
        (b"", None),
        (line(type="user"), None),
        (line(type="user") + KEPT, DeferredCall(call=CALL, tool="Bash")),
        (KEPT + line(type="mode"), DeferredCall(call=CALL, tool="Bash")),
        (KEPT + line(type="user", message={"content": [{"tool_use_id": CALL}]}), None),
        (KEPT + line(type="user"), DeferredCall(call=CALL, tool="Bash")),
        (KEPT + line(type="assistant"), DeferredCall(call=CALL, tool="Bash", is_last=False)),
        (KEPT.removesuffix(b"\n"), None),
        (KEPT + line(type="mode", text="x" * TAIL), None),
        (line(type="user", text='say "hook_deferred_tool"'), None),
    ],
)
def test_call_that_claude_proposes_again_is_found_as_claude_finds_it(
    transcript: bytes, found: DeferredCall | None
) -> None:
    assert deferred_call(transcript) == found


def run_hook(files: Path, asked: dict[str, Any]) -> subprocess.Popen[bytes]:
    (matcher,) = hook_settings(files)["hooks"]["PreToolUse"]
    command = matcher["hooks"][0]["command"]
    process = subprocess.Popen(
        ["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has given up by now
        process.stdin.write(json.dumps(asked).encode())
        process.stdin.close()
    return process


def test_hook_asks_once_and_prints_the_answer(tmp_path: Path) -> None:
    files = tmp_path / "it's here"
    files.mkdir()
    with run_hook(files, {"tool_use_id": CALL}) as hook:
        anyio.run(until, lambda: question_in(files) is not None)
        answer_in(files, {"hookSpecificOutput": {}})
        assert hook.stdout is not None
        printed = hook.stdout.read()
        assert hook.wait() == 0
    with run_hook(files, {"tool_use_id": "toolu_2"}) as later:
        assert later.stdout is not None
        assert (later.stdout.read(), later.wait()) == (b"", 0)

    assert json.loads(printed) == {"hookSpecificOutput": {}}
    assert question_in(files) == {"tool_use_id": CALL}


def test_link_in_the_place_of_the_files_leads_nowhere(tmp_path: Path) -> None:
    secrets, files = tmp_path / "secrets", tmp_path / "files"
    secrets.mkdir()
    (secrets / ASKED).write_text(json.dumps({"tool_use_id": CALL}))
    files.symlink_to(secrets)

    assert question_in(files) is None
    with pytest.raises(OSError, match="files"):
        answer_in(files, {"hookSpecificOutput": {}})
    assert [path.name for path in secrets.iterdir()] == [ASKED]


def test_hook_that_cannot_ask_keeps_the_call_from_running(tmp_path: Path) -> None:
    with run_hook(tmp_path / "gone", {"tool_use_id": CALL}) as hook:
        assert hook.wait() == 2
    (tmp_path / f"{ASKED}.new").mkdir()
    with run_hook(tmp_path, {"tool_use_id": CALL}) as hook:
        assert hook.wait() == 2
    assert not (tmp_path / ANSWER).exists()


@pytest.mark.parametrize(("is_own", "expected"), [(True, "allow"), (False, "deny")])
def test_only_the_job_that_made_the_call_can_have_it_approved(
    tmp_path: Path, is_own: bool, expected: str
) -> None:
    asked_of, asked = request(Proceed())
    opening = Opening(
        text="",
        resume="s",
        deferred=DeferredCall(call=CALL, tool="Bash"),
        is_own_deferred=is_own,
    )
    gate = with_review(Gate(), asked_of, opening)
    (tmp_path / ASKED).write_bytes(line(tool_use_id=CALL, tool_name="Bash", tool_input=PUSH))

    async def answer_twice() -> Message | None:
        await gate.answer_deferred(tmp_path)
        (tmp_path / ANSWER).rename(tmp_path / "first")
        await gate.answer_deferred(tmp_path)
        call = GatedCall(call=CALL, transcript=Path("t"), tool="Bash", input=PUSH)
        return await gate.decide(call, 0.0)

    assert anyio.run(answer_twice) is PASS
    assert decision(json.loads((tmp_path / "first").read_bytes()))[0] == expected
    assert not (tmp_path / ANSWER).exists()
    assert len(asked) == is_own
    assert len(gate.take_denials()) == (not is_own)


def of_execution(*events: Event) -> tuple[Event, ...]:
    begun = describe(Init(runtime="cli", runtime_session_id="s"))
    return tuple(
        type(event)(
            **{
                **{name: getattr(event, name) for name in event.__struct_fields__},
                "execution": f"{JOB}.1",
            }
        )
        for event in (begun, *events)
    )


WAITING = of_execution(
    ToolUseEvent(tool_name="Bash", tool_use_id=CALL, input=PUSH),
    describe(Reviewed(tool_use_id=CALL, item="ask-1", status="pending")),
)


def test_job_that_waited_is_continued_without_a_word() -> None:
    asked_of, _ = request(history=WAITING)
    opening = Opening(text="go", resume="s", deferred=DeferredCall(call=CALL, tool="Bash"))
    opening = completed(opening, asked_of, Memory(calls=frozenset({CALL})))

    assert (opening.prompt_text, opening.is_own_deferred) == ("", True)
    assert records_of(opening, asked_of) == []


@pytest.mark.parametrize("deferred", [None, DeferredCall(call=CALL, tool="Bash", is_last=False)])
def test_call_that_was_not_kept_is_reported_as_not_run(deferred: DeferredCall | None) -> None:
    asked_of, _ = request(history=WAITING)
    memory = Memory(calls=frozenset({CALL}), open_calls=frozenset({CALL}))
    opening = completed(Opening(text="go", resume="s", deferred=deferred), asked_of, memory)
    result, note = records_of(opening, asked_of)

    assert NOT_RUN in opening.prompt_text
    assert "git push" in opening.prompt_text
    assert getattr(result, "tool_use_id", None) == CALL
    assert isinstance(note, SystemEvent)
    assert note.content == opening.note
