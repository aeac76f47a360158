"""The gate by itself: a call passes when journal and transcript have it, and not before."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.model.journal.event import Event, SystemEvent, ToolResultEvent, ToolUseEvent
from nightherd.runtimes.claude.gate import PASS, Gate, GatedCall, WrittenCalls
from nightherd.runtimes.claude.translate import Translator
from runtimes.heard import codes

CALL = "toolu_1"
LINE = '{"type":"assistant","message":{"id":"msg_1","content":[{"type":"tool_use","id":"%s"}]}}\n'


def asked_for(transcript: Path, call: str = CALL, **more: Any) -> dict[str, Any]:
    """What Claude hands to a hook."""
    return {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": call,
        "transcript_path": str(transcript),
        **more,
    }


def record(gate: Gate, event: Event) -> list[Event]:
    return list(gate.record(event))


def reason_of(answer: Any) -> str:
    decided = answer["hookSpecificOutput"]
    assert decided["permissionDecision"] == "deny"
    return str(decided["permissionDecisionReason"])


def test_call_passes_without_a_decision_once_journal_and_transcript_have_it(tmp_path: Path) -> None:
    transcript, gate = tmp_path / "s.jsonl", Gate()
    call = GatedCall.of(asked_for(transcript))
    answers = [gate.answer(call, 0.0)]
    record(gate, ToolUseEvent(tool_name="Bash", tool_use_id=CALL))
    answers.append(gate.answer(call, 0.0))
    transcript.write_text(LINE % "toolu_0")
    answers.append(gate.answer(call, 0.0))
    with transcript.open("a") as file:
        file.write((LINE % CALL).removesuffix("\n"))
        file.flush()
        answers.append(gate.answer(call, 0.0))
        file.write("\n")

    assert answers == [None] * 4
    assert gate.answer(call, 0.0) == PASS == {}


def test_call_that_only_the_transcript_has_waits(tmp_path: Path) -> None:
    transcript, gate = tmp_path / "s.jsonl", Gate(timedelta(seconds=1))
    transcript.write_text(LINE % CALL)
    call = GatedCall.of(asked_for(transcript))

    # However long: the engine may hold a run, and a frozen worker is behind.
    assert gate.answer(call, 3600.0) is None
    record(gate, ToolUseEvent(tool_name="Bash", tool_use_id=CALL))
    assert gate.answer(call, 3600.0) == PASS


def test_patience_with_the_transcript_begins_when_the_journal_has_the_call(tmp_path: Path) -> None:
    gate, call = Gate(timedelta(seconds=1)), GatedCall.of(asked_for(tmp_path / "s.jsonl"))
    assert gate.answer(call, 50.0) is None
    record(gate, ToolUseEvent(tool_name="Bash", tool_use_id=CALL))

    assert [gate.answer(call, waited) for waited in (60.0, 60.9)] == [None, None]
    assert "Claude's transcript" in reason_of(gate.answer(call, 61.0))


def test_call_that_only_the_journal_has_is_denied_when_patience_ends(tmp_path: Path) -> None:
    gate = Gate(timedelta(milliseconds=20))
    record(gate, ToolUseEvent(tool_name="Bash", tool_use_id=CALL))

    answer = anyio.run(gate.ask, asked_for(tmp_path / "s.jsonl"))

    assert "Claude's transcript" in reason_of(answer)


def test_closed_gate_lets_pass_what_is_on_record_and_denies_the_rest(tmp_path: Path) -> None:
    transcript, gate = tmp_path / "s.jsonl", Gate()
    transcript.write_text(LINE % CALL)
    record(gate, ToolUseEvent(tool_name="Bash", tool_use_id=CALL))
    gate.close()

    assert gate.answer(GatedCall.of(asked_for(transcript)), 0.0) == PASS
    other = GatedCall.of(asked_for(transcript, "toolu_2"))
    assert "stopped" in reason_of(gate.answer(other, 0.0))


def test_call_without_a_name_is_denied(tmp_path: Path) -> None:
    hook = asked_for(tmp_path / "s.jsonl")
    del hook["tool_use_id"]

    assert "does not announce its tool calls" in reason_of(Gate().answer(GatedCall.of(hook), 0.0))


@pytest.mark.parametrize(
    "place", ["s/subagents/agent-a1.jsonl", "s/subagents/workflows/w1/agent-a1.jsonl", "s.jsonl"]
)
def test_call_of_a_sub_agent_is_looked_for_in_its_own_transcript(
    tmp_path: Path, place: str
) -> None:
    written = WrittenCalls()
    transcript = tmp_path / "s.jsonl"
    assert not written.has(transcript, CALL, "a1")
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text(LINE % CALL)

    assert written.has(transcript, CALL, "a1")
    assert not written.has(transcript, CALL, "a2") or place == "s.jsonl"


def test_transcript_that_was_replaced_by_a_shorter_one_is_read_anew(tmp_path: Path) -> None:
    transcript, written = tmp_path / "s.jsonl", WrittenCalls()
    transcript.write_text(LINE % "toolu_0" + LINE % "toolu_00")
    assert written.has(transcript, "toolu_00")
    transcript.write_text(LINE % CALL)

    assert written.has(transcript, CALL)


def test_name_of_a_call_within_what_a_tool_printed_does_not_count(tmp_path: Path) -> None:
    transcript = tmp_path / "s.jsonl"
    printed = json.dumps({"id": CALL})
    transcript.write_text(json.dumps({"content": f"{printed} {CALL}"}) + "\n")

    assert not WrittenCalls().has(transcript, CALL)


def test_call_that_the_stream_does_not_show_is_recorded_by_what_the_gate_is_asked(
    tmp_path: Path,
) -> None:
    transcript, gate = tmp_path / "s.jsonl", Gate()
    transcript.write_text(LINE % CALL)
    hook = asked_for(transcript, agent_id="a1")
    request = {"type": "control_request", "request": {"subtype": "hook_callback", "input": hook}}
    unannounced = gate.read(request)
    assert unannounced is not None
    assert gate.answer(GatedCall.of(hook), 0.0) is None

    (line,) = Translator(runtime="cli", first_turn=1, is_resumed=False).hear(unannounced)
    record(gate, line)

    assert isinstance(line, SystemEvent)
    assert line.content == 'sub-agent a1: Bash {"command": "ls"}'
    assert gate.answer(GatedCall.of(hook), 0.0) == PASS


def test_call_that_the_stream_shows_is_not_recorded_twice(tmp_path: Path) -> None:
    gate = Gate()
    block = {"type": "tool_use", "id": CALL, "name": "Bash", "input": {}}
    gate.read({"type": "assistant", "message": {"content": [block]}})
    hook = asked_for(tmp_path / "s.jsonl")

    assert gate.read({"type": "control_request", "request": {"input": hook}}) is None


def test_result_of_a_call_that_never_came_to_the_gate_is_a_warning_once() -> None:
    gate = Gate()
    result = ToolResultEvent(tool_use_id=CALL, result="x", success=True)

    assert codes(record(gate, result)) == ["gate_bypassed"]
    assert record(gate, result) == []
    assert list(Gate().record(ToolResultEvent(tool_use_id=CALL, result="x", success=False))) == []
