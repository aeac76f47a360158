"""Calls that were cut off with their run: those marked as idempotent are made again, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ToolReturnPart

from nightherd.model.agents.mcp import InjectedMcpServerDef, InjectedMcpToolDef
from nightherd.model.agents.script import UseTool, compile_script
from nightherd.model.jobs.repeat import Repeatable, is_marked
from nightherd.model.journal.event import (
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    payload_of,
)
from nightherd.model.journal.system import Complete
from runtimes.native.native_stage import (
    NativeStage,
    Record,
    Replies,
    calls,
    of_type,
    results,
    says,
)


def marked(events: list[Event]) -> list[bool]:
    """Whether each call on record may be made again."""
    return [is_marked(event) for event in of_type(events, ToolUseEvent)]


def until_calls(events: list[Event], answered: int = 0) -> list[Event]:
    """The record of a run that was killed after so many results."""
    places = [place for place, event in enumerate(events) if isinstance(event, ToolResultEvent)]
    return events[: places[answered]]


def parts(model: Replies) -> list[tuple[str, str]]:
    """The results that the model was told last."""
    last = model.conversations[-1][-1].parts
    return [(one.tool_call_id, str(one.content)) for one in last if isinstance(one, ToolReturnPart)]


@pytest.mark.parametrize(
    ("rules", "call", "is_repeatable"),
    [
        ((), ("Read", {"file_path": "a"}), True),
        ((), ("Glob", {"pattern": "*"}), True),
        ((), ("Bash", {"command": "git status"}), False),
        ((), ("Write", {"file_path": "a", "content": "x"}), False),
        (("Bash",), ("Bash", {"command": "rm -rf build"}), True),
        (("Bash(git *)",), ("Bash", {"command": "git status"}), True),
        (("Bash(git *)",), ("Bash", {"command": "git status && rm x"}), False),
        (("Bash(git *)",), ("Bash", {"command": "git status > $x"}), False),
        (("Edit(docs/**)",), ("Write", {"file_path": "docs/a", "content": "x"}), True),
        (("Edit(docs/**)",), ("Write", {"file_path": "a", "content": "x"}), False),
        (("Bash",), ("Bash", "{not json"), False),
        (("Teleport",), ("Teleport", {}), False),
    ],
)
def test_a_call_says_on_record_whether_it_may_be_made_again(
    stage: NativeStage, rules: tuple[str, ...], call: tuple[str, Any], is_repeatable: bool
) -> None:
    agent = {"idempotent_tools": rules, "permission_mode": "plan"}

    events = stage.run(Replies(calls(call), says("done")), stage.request(agent=agent))

    assert marked(events) == [is_repeatable]


@pytest.mark.parametrize(
    ("flags", "is_repeatable"),
    [({}, False), ({"is_read_only": True}, True), ({"is_idempotent": True}, True)],
    ids=["neither", "read-only", "idempotent"],
)
def test_tools_given_to_a_run_say_so_themselves(
    stage: NativeStage, flags: Any, is_repeatable: bool
) -> None:
    async def answer(input: Any) -> str:
        return "here"

    desk = InjectedMcpServerDef(
        name="desk",
        tools=(InjectedMcpToolDef(name="look", description="", handler=answer, **flags),),
    )
    model = Replies(calls(("mcp__desk__look", {})), says("done"))

    events = stage.run(model, stage.request(injected_servers=(desk,)))

    assert marked(events) == [is_repeatable]
    assert results(events)[0].result == "here"


def test_calls_that_were_cut_off_are_made_again_and_told_with_the_others(
    stage: NativeStage,
) -> None:
    record = Record()
    write = ("Bash", {"command": "echo x >> made"})
    read = ("Read", {"file_path": "a.txt"})
    (stage.directory / "a.txt").write_text("old")
    first = stage.run(Replies(calls(read, write, read), says("-")), stage.request(record))
    record.add(*until_calls(first, answered=2))
    (stage.directory / "a.txt").write_text("new")
    (stage.directory / "made").unlink()

    model = Replies(says("I see."))
    again = stage.request(record, is_continued=True, repeat=frozenset({"call-2"}))
    events = stage.run(model, again)

    assert not (stage.directory / "made").exists()
    assert parts(model) == [("call-0", "old"), ("call-1", ""), ("call-2", "new")]
    assert [(one.tool_use_id, one.turn) for one in results(events)] == [("call-2", 1)]
    record.add(*events)
    assert isinstance(events[-1], SystemEvent)
    assert isinstance(payload_of(events[-1]), Complete)


def test_a_script_goes_on_after_the_call_that_was_made_again(stage: NativeStage) -> None:
    script = compile_script(
        [UseTool("Glob", {"pattern": "*"}), UseTool("Glob", {"pattern": "*.x"})]
    )
    record, agent = Record(), {"script": script}
    first = stage.run(None, stage.request(record, agent=agent))
    record.add(*until_calls(first))
    (call,) = of_type(record.events, ToolUseEvent)

    request = stage.request(
        record, agent=agent, is_continued=True, repeat=frozenset({call.tool_use_id})
    )
    events = stage.run(None, request)

    assert [one.turn for one in results(events)] == [1, 2]
    assert len(of_type(events, ToolUseEvent)) == 1


def test_only_calls_of_a_whole_answer_may_be_made_again() -> None:
    def call(name: str, **more: Any) -> ToolUseEvent:
        return ToolUseEvent(
            tool_name="Read", tool_use_id=name, extra={"idempotent": True}, turn=1, **more
        )

    found = Repeatable()
    for event in (call("lost", index=0), call("a", index=0), call("b", index=1, end=True)):
        found.add(event)

    assert found.calls == {"a", "b"}


def test_calls_behind_the_one_that_was_cut_off_had_not_begun_and_are_made() -> None:
    def call(name: str, **more: Any) -> ToolUseEvent:
        return ToolUseEvent(tool_name="Bash", tool_use_id=name, turn=1, **more)

    def result(name: str) -> ToolResultEvent:
        return ToolResultEvent(tool_use_id=name, success=True, turn=1, index=0, end=True)

    found, left = Repeatable(), []
    said = (call("a", index=0), call("b", index=1), call("c", index=2, end=True))
    for event in (*said, result("a"), result("b"), result("c")):
        found.add(event)
        left.append(sorted(found.calls))

    assert left == [[], [], ["b", "c"], ["c"], [], []]
