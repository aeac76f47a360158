"""State directories and projects that are named otherwise or moved: their workspaces are the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import make_project

FLEET = """\
agents:
  - name: chat
    runtime: scripted
    permission_mode: bypassPermissions
    session: {mode: persistent}
    working_directory: {root: ., mode: worktree, scope: session}
    script: [{repeat: 9, steps: [{tool: Bash, input: {command: "echo ${prompt} >> log"}}]}]
    max_turns: 1
"""


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    make_project(fleet)
    (fleet / "nightherd.yaml").write_text(FLEET)
    return fleet


def test_every_path_to_a_state_directory_leads_to_the_same_workspaces(
    cli: Cli, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("elsewhere")
    (project / "link").symlink_to(place)
    paths = [f"../{project.name}/link/state", str(place / "state"), "link/state", "link/state"]

    for number, path in enumerate(paths):
        cli("--state-dir", path, "run", "chat", "-p", str(number))

    (shown,) = cli("--state-dir", paths[0], "workspace", "list", "--json").data
    log = place / "state-workspaces" / shown["id"] / "log"
    assert log.read_text() == "0\n1\n2\n3\n"


def test_the_changes_of_a_job_can_be_seen_after_its_project_was_moved(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = cli("run", "chat", "-p", "work", "--json").data["job_id"]
    moved = project.rename(project.with_name(f"{project.name}-moved"))
    monkeypatch.chdir(moved)

    assert "+work" in cli("jobs", "diff", job).out


def test_the_changes_of_a_job_can_be_seen_after_its_state_directory_was_moved(
    cli: Cli, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    job = cli("run", "chat", "-p", "work", "--json").data["job_id"]
    moved = (project / ".nightherd").rename(tmp_path_factory.mktemp("moved") / "state")

    assert "+work" in cli("--state-dir", str(moved), "jobs", "diff", job).out
