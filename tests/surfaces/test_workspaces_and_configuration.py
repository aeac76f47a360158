"""Workspaces and the fleet file: agents with the same setup, and a mode that changes while a job waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import git, make_project, say

BUILDERS = """\
defaults: {runtime: scripted, permission_mode: bypassPermissions, default_prompt: go}
agents:
  - name: first
    working_directory:
      root: .
      mode: worktree
      setup: [{run: "mkdir out; cp app.txt out/built.ignored", paths: [out]}]
    script: &script [{tool: Bash, input: {command: "cp out/built.ignored seen"}}, {say: done}]
  - name: second
    working_directory: {root: other, mode: worktree, setup: [{run: "mkdir out; cp app.txt out/built.ignored", paths: [out]}]}
    script: *script
"""


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    return make_project(fleet)


def directory(cli: Cli, job: str) -> Path:
    return Path(cli("workspace", "show", job, "--json").data["directory"])


def test_what_setup_made_of_one_repository_is_not_given_to_another(cli: Cli, project: Path) -> None:
    other = project / "other"
    git(project, "clone", "--quiet", ".", "other")
    (other / "app.txt").write_text("of the other\n")
    git(other, "commit", "--quiet", "--all", "-m", "other")
    (project / "nightherd.yaml").write_text(BUILDERS)
    cli("run", "first")

    job = cli("run", "second", "--json").data["job_id"]

    assert (directory(cli, job) / "seen").read_text() == "of the other\n"


def test_an_approved_call_runs_in_the_workspace_though_the_mode_changed_meanwhile(
    cli: Cli, project: Path
) -> None:
    job = str(cli("run", "waiting", "--json").data["job_id"])
    fleet = project / "nightherd.yaml"
    fleet.write_text(fleet.read_text().replace("{root: ., mode: worktree}", "{root: .}"))
    assert cli("reload", "--accept").code == 0

    assert cli("inbox", "approve", job).code == 0
    cli("worker", "--until-idle")

    assert cli("jobs", "show", job, "--json").data["status"] == "completed"
    assert (directory(cli, job) / "pushed").exists()
    assert not (project / "pushed").exists()
    assert cli("jobs", "diff", job, "--name-only").out.split() == ["app.txt", "pushed"]


def test_what_an_agent_put_beside_the_results_of_setup_is_not_given_to_others(
    cli: Cli, project: Path
) -> None:
    setup = "setup: [{run: 'mkdir -p out; cp app.txt out/built', files: [app.txt], paths: [out]}]"
    fleet = project / "nightherd.yaml"
    fleet.write_text(fleet.read_text().replace("mode: worktree", f"mode: worktree, {setup}"))
    say(cli, "echo changed > app.txt; echo planted > out/planted")
    say(cli, "true")  # app.txt is another one: setup runs again
    (project / "app.txt").write_text("changed\n")
    git(project, "commit", "--quiet", "--all", "-m", "changed")

    job = cli("run", "shell", "-p", "ls out > seen", "--json").data["job_id"]

    assert (directory(cli, job) / "seen").read_text() == "built\n"
