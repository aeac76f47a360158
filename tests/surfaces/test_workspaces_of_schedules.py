"""Schedules of one agent that work in different places, in one session: each finds its own place again."""

from __future__ import annotations

from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import make_project

FLEET = """\
agents:
  - name: night
    runtime: scripted
    permission_mode: bypassPermissions
    session: {mode: persistent}
    limits: {turns: 1}
    working_directory: {root: ., mode: worktree, scope: session}
    script: [{repeat: 40, steps: [{tool: Bash, input: {command: "echo ${prompt} >> log"}}]}]
    schedules:
      tree: {type: interval, interval: 1h, prompt: tree, resume_session: true}
      copy: {type: interval, interval: 1h, prompt: copy, resume_session: true, working_directory: {mode: copy}}
      here: {type: interval, interval: 1h, prompt: here, resume_session: true, working_directory: {mode: shared}}
"""


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    make_project(fleet)
    (fleet / "nightherd.yaml").write_text(FLEET)
    return fleet


def fire(cli: Cli, schedule: str) -> str | None:
    """Run a job of the schedule to its end; return its workspace."""
    assert cli("schedule", "run", f"night/{schedule}").code == 0
    cli("worker", "--until-idle")
    job = cli("jobs", "show", "@last", "--json").data
    cli("jobs", "cancel", job["id"])
    workspace = job["workspace_id"]
    return None if workspace is None else str(workspace)


def test_each_schedule_of_a_session_goes_on_in_its_own_workspace(cli: Cli, project: Path) -> None:
    first = [fire(cli, name) for name in ("tree", "copy", "here")]
    second = [fire(cli, name) for name in ("tree", "here", "copy")]

    assert len(cli("session", "list", "--json").data) == 1
    assert first[2] is None
    assert second == [first[0], None, first[1]]
    logs = [
        (project / ".nightherd-workspaces" / str(name) / "log").read_text() for name in first[:2]
    ]
    assert logs == ["tree\ntree\n", "copy\ncopy\n"]
    assert (project / "log").read_text() == "here\nhere\n"
