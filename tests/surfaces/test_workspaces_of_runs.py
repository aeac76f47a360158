"""Workspaces that a job shares with its child jobs: the first job of the run decides how long they are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import make_project

FLEET = """\
defaults:
  runtime: scripted
  permission_mode: bypassPermissions
  allowed_tools: [Bash, Spawn]
  default_prompt: go
agents:
  - name: parent
    working_directory: {root: ., mode: worktree, scope: run, keep: until_merged}
    script:
      - {tool: Bash, input: {command: "echo work > mine"}}
      - {tool: Spawn, input: {agent: child, prompt: go}}
      - say: done
  - name: child
    working_directory: {root: ., mode: worktree, scope: run, keep: never}
    script: [{tool: Bash, input: {command: "cat mine"}}, {say: done}]
"""


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    make_project(fleet)
    (fleet / "nightherd.yaml").write_text(FLEET)
    return fleet


def test_a_child_job_that_keeps_nothing_does_not_remove_the_work_of_its_parent(
    cli: Cli, project: Path
) -> None:
    job = cli("run", "parent", "--json").data["job_id"]

    shown = cli("workspace", "show", job, "--json").data
    assert (shown["keep"], shown["kept_by"], shown["is_there"]) == (
        "until_merged",
        "not_merged",
        True,
    )
    assert (Path(shown["directory"]) / "mine").read_text() == "work\n"
