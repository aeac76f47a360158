"""The table of permissions on the real `claude`, under both runtimes: where it differs, the table says so."""

from __future__ import annotations

import pytest

from nightherd.model.journal.event import Event, ToolResultEvent, ToolUseEvent
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.permission_table import CASES, Case, prepare


def made(events: list[Event]) -> list[tuple[bool | None, str]]:
    """Whether each call was made, in the order of the calls, and what was answered."""
    results = {one.tool_use_id: one for one in events if isinstance(one, ToolResultEvent)}
    answers = [results[one.tool_use_id] for one in events if isinstance(one, ToolUseEvent)]
    return [(one.success, str(one.result)[:200]) for one in answers]


@pytest.mark.either_runtime
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


@pytest.mark.either_runtime
def test_settings_files_approve_nothing_in_plan(stage: ClaudeStage) -> None:
    prepare(stage.root)
    stage.claude_home.mkdir(parents=True, exist_ok=True)
    settings = stage.claude_home / "settings.json"
    settings.write_text('{"permissions": {"allow": ["Bash(git *)", "Edit(**)"]}}')
    calls = (
        Call("Bash", {"command": "git init -q made"}),
        Call("Write", {"file_path": str(stage.root / "work" / "new.txt"), "content": "x"}),
        Call("Read", {"file_path": str(stage.root / "work" / "a.txt")}),
    )

    with MessagesApi(*(Say(calls=(one,)) for one in calls), Say(text="so be it")) as api:
        events = stage.run(api, permission_mode="plan", setting_sources=("user",))

    assert [success for success, _ in made(events)] == [False, False, True]
    assert not (stage.root / "work" / "made").exists()


@pytest.mark.either_runtime
def test_without_its_sandbox_nothing_runs(stage: ClaudeStage) -> None:
    """A machine that has what a sandbox needs keeps the command in; on any other Claude does not start."""
    prepare(stage.root)
    escaped = stage.root / "beside" / "escaped"
    call = Call("Bash", {"command": f"touch {escaped}"})

    with MessagesApi(Say(calls=(call,)), Say(text="so be it")) as api:
        stage.run(
            api,
            permission_mode="acceptEdits",
            allowed_tools=("Bash",),
            sandbox={"enabled": True, "allowUnsandboxedCommands": False},
        )

    assert not escaped.exists()
