"""The table of permissions on the real `claude`, under both runtimes: where it differs, the table says so."""

from __future__ import annotations

import pytest

from nightherd.model.event import Event, ToolResultEvent, ToolUseEvent
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.permission_table import CASES, Case, prepare


def made(events: list[Event]) -> list[tuple[bool | None, str]]:
    """Whether each call was made, in the order of the calls, and what was answered."""
    results = {one.tool_use_id: one for one in events if isinstance(one, ToolResultEvent)}
    answers = [results[one.tool_use_id] for one in events if isinstance(one, ToolUseEvent)]
    return [(one.success, str(one.result)[:200]) for one in answers]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_claude_obeys_the_table(stage: ClaudeStage, case: Case) -> None:
    prepare(stage.root)
    # One call a turn: a call that fails cancels those beside it.
    turns = [Say(calls=(Call(one.tool, one.filled(stage.root)),)) for one in case.tries]

    with MessagesApi(*turns, Say(text="so be it")) as api:
        events = stage.run(api, **case.agent(stage.root))

    answers = made(events)
    assert [success for success, _ in answers] == [
        one.is_allowed_by_claude() for one in case.tries
    ], [
        (one.tool, dict(one.input), text)
        for one, (success, text) in zip(case.tries, answers, strict=True)
        if success is not one.is_allowed_by_claude()
    ]
