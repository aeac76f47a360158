"""Scripted agents obey the table of permissions: what is denied is on record and does not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.model.agents.script import Say, UseTool
from nightherd.model.journal.event import SystemEvent, ToolResultEvent, ToolUseEvent, payload_of
from nightherd.model.journal.system import Denied, Init
from runtimes.heard import denials
from runtimes.permission_table import CASES, Case, prepare
from runtimes.stage import Stage


def stage_at(place: Path, case: Case) -> Stage:
    prepare(place)
    return Stage(place / "work", rules=case.agent(place))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_scripted_agents_obey_the_table(tmp_path: Path, case: Case) -> None:
    calls = [UseTool(one.tool, one.filled(tmp_path)) for one in case.tries]

    events = stage_at(tmp_path, case).play(*calls)

    results = [event for event in events if isinstance(event, ToolResultEvent)]
    assert [one.success for one in results] == [one.is_allowed for one in case.tries], [
        one.error for one in results
    ]
    assert [one.tool_name for one in denials(events)] == [
        one.tool for one in case.tries if not one.is_allowed
    ]


def test_a_denied_call_is_answered_with_the_reason_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    stage = Stage(tmp_path / "work", rules={"permission_mode": "default"})

    events = stage.play(UseTool("Bash", {"command": "touch made.txt"}), Say("a pity"))

    use, denied, result = events[1:4]
    assert isinstance(use, ToolUseEvent)
    assert isinstance(denied, SystemEvent)
    assert isinstance(result, ToolResultEvent)
    (payload,) = denials(events)
    assert payload == Denied(
        tool_name="Bash", reason=denied.content or "", tool_use_id=use.tool_use_id
    )
    assert (result.tool_use_id, result.success, result.error) == (
        use.tool_use_id,
        False,
        payload.reason,
    )
    assert "needs approval in mode default" in payload.reason
    assert denied.turn == use.turn == result.turn == 1
    assert not (tmp_path / "work" / "made.txt").exists()
    assert getattr(events[4], "content", None) == "a pity"


def test_what_an_agent_does_not_have_is_not_offered(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    rules = {
        "tools": ("Bash", "Read", "Write"),
        "denied_tools": ("Bash", "Read(a.txt)"),
        "required_caps": ("nightherd.tool.Bash", "nightherd.tool.Read"),
    }

    events = Stage(tmp_path / "work", rules=rules).play(Say("hello"))

    (init,) = [payload_of(one) for one in events[:1] if isinstance(one, SystemEvent)]
    assert isinstance(init, Init)
    assert init.tools == ["Read"]


def test_a_link_out_of_the_working_directory_is_outside(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / "work" / "link").symlink_to(tmp_path / "beside")
    stage = Stage(tmp_path / "work", rules={"permission_mode": "acceptEdits"})

    events = stage.play(
        UseTool("Write", {"file_path": "link/new.txt", "content": "x"}),
        UseTool("Bash", {"command": "rm link/out.txt"}),
    )

    assert len(denials(events)) == 2
    assert sorted(one.name for one in (tmp_path / "beside").iterdir()) == ["out.txt"]
