"""Our own loops: no agent changes the state directory, the fleet's files or Claude's settings with its tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.model.agents.script import UseTool
from nightherd.model.journal.event import ToolResultEvent
from runtimes.heard import denials
from runtimes.native.native_stage import NativeStage, Replies, calls, results, says
from runtimes.protected_table import COMMANDS, NAME, is_untouched, prepare, written
from runtimes.stage import Stage

MODES = ("acceptEdits", "bypassPermissions")
ALLOWED = ("Bash", "Write", "Edit")


@pytest.mark.parametrize("mode", MODES)
def test_scripted_agents_cannot_change_what_is_protected(tmp_path: Path, mode: str) -> None:
    place = tmp_path / NAME
    protected = prepare(place)
    stage = Stage(place, rules={"permission_mode": mode, "allowed_tools": ALLOWED})
    edit = {"file_path": "nightherd.yaml", "old_string": "as", "new_string": "is"}
    tries = [
        *written(place),
        ("Edit", edit),
        *(("Bash", {"command": one}) for one in COMMANDS),
        ("Bash", {"command": "echo evil > nightherd.yaml"}),
    ]

    events = stage.play(*(UseTool(*one) for one in tries), protected=protected)

    made = [one for one in events if isinstance(one, ToolResultEvent) and one.success]
    assert [tries[int(str(one.tool_use_id).rpartition("_")[2]) - 1] for one in made] == []
    assert len(denials(events)) == len(tries)
    assert is_untouched(place)


def test_native_agents_cannot_change_what_is_protected(tmp_path: Path) -> None:
    place = tmp_path / NAME
    protected = prepare(place)
    stage = NativeStage(place)
    tries = [*written(place), *(("Bash", {"command": one}) for one in COMMANDS)]

    request = stage.request(agent={"permission_mode": "bypassPermissions"}, protected=protected)
    events = stage.run(Replies(calls(*tries), says("done")), request)

    assert [one.success for one in results(events)] == [False] * len(tries)
    assert is_untouched(place)


def test_what_is_not_protected_is_changed_as_before(tmp_path: Path) -> None:
    protected = prepare(tmp_path)
    stage = Stage(tmp_path, rules={"permission_mode": "acceptEdits"})
    tries = (
        ("Write", {"file_path": "sub/new.yaml", "content": "x"}),
        ("Write", {"file_path": "hard.yaml", "content": "x"}),
        ("Write", {"file_path": "sub/.claude/notes.md", "content": "x"}),
        ("Read", {"file_path": "nightherd.yaml"}),
        (
            "Bash",
            {"command": "cp -r evil sub && mv mine.txt sub && mkdir -p sub/deep && rm evil/x"},
        ),
        ("Bash", {"command": "cp nightherd.yaml sub/copy.yaml"}),
        ("Bash", {"command": "rm sub/*.yaml"}),
    )

    events = stage.play(*(UseTool(*one) for one in tries), protected=protected)

    answers = [one for one in events if isinstance(one, ToolResultEvent)]
    # A file of two names is denied by both: whoever changes it in place changes the other.
    assert [one.success for one in answers] == [True, False, True, True, True, True, True], [
        one.error for one in answers
    ]
