"""Native agents obey the table of permissions: what is denied is on record and does not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtimes.heard import denials
from runtimes.native.native_stage import NativeStage, Replies, calls, results, says
from runtimes.permission_table import CASES, Case, prepare


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_native_agents_obey_the_table(tmp_path: Path, case: Case) -> None:
    prepare(tmp_path)
    stage = NativeStage(tmp_path / "work")
    wanted = [(one.tool, one.filled(tmp_path)) for one in case.tries]

    events = stage.run(
        Replies(calls(*wanted), says("done")), stage.request(agent=case.agent(tmp_path))
    )

    made = [one.success for one in results(events)]
    assert made == [one.is_allowed for one in case.tries], [one.error for one in results(events)]


def test_a_search_stays_in_the_agents_own_directories(tmp_path: Path) -> None:
    prepare(tmp_path)
    stage = NativeStage(tmp_path / "work")
    model = Replies(
        calls(
            ("Glob", {"pattern": "**"}),
            ("Grep", {"pattern": "in"}),
            ("Grep", {"pattern": "out", "path": str(tmp_path / "beside")}),
        ),
        says("done"),
    )

    events = stage.run(model, stage.request(agent={"permission_mode": "acceptEdits"}))

    made = {one.tool_use_id: one.success for one in results(events)}
    assert made == {"call-0": True, "call-1": True, "call-2": False}
    assert [one.tool_name for one in denials(events)] == ["Grep"]


def test_nothing_is_searched_that_may_not_be_read(tmp_path: Path) -> None:
    prepare(tmp_path)
    stage = NativeStage(tmp_path / "work")
    agent = {"denied_tools": ("Read(a.txt)",)}

    events = stage.run(
        Replies(calls(("Grep", {"pattern": "a"})), says("done")), stage.request(agent=agent)
    )

    (denied,) = denials(events)
    assert "Read(a.txt)" in denied.reason
