"""The real `claude`: what is protected stays as it is, also where it asks nobody."""

from __future__ import annotations

import pytest

from nightherd.model.journal.event import ToolResultEvent
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.protected_table import COMMANDS, NAME, is_untouched, prepare, written


@pytest.mark.either_runtime
@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions"])
def test_claude_cannot_change_what_is_protected(stage: ClaudeStage, mode: str) -> None:
    place = stage.root / NAME
    protected = prepare(place)
    tries = [
        ("Write", {"file_path": "mine-too.txt", "content": "mine"}),
        *written(place),
        ("Read", {"file_path": str(place / "nightherd.yaml")}),
        (
            "Edit",
            {"file_path": str(place / "nightherd.yaml"), "old_string": "as", "new_string": "is"},
        ),
        *(("Bash", {"command": one}) for one in COMMANDS),
        ("Bash", {"command": "echo evil > nightherd.yaml"}),
    ]
    turns = [Say(calls=(Call(tool, input),)) for tool, input in tries]

    with MessagesApi(*turns, Say(text="so be it")) as api:
        events = stage.run(
            api,
            protected=protected,
            working_directory=str(place),
            permission_mode=mode,
            allowed_tools=("Bash", "Write", "Edit"),
        )

    results = [one for one in events if isinstance(one, ToolResultEvent)]
    made = [tries[place][1] for place, one in enumerate(results) if one.success]
    assert made == [tries[0][1], {"file_path": str(place / "nightherd.yaml")}]
    assert len(results) == len(tries)
    assert is_untouched(place)
