"""State directories and projects that are named otherwise or moved: their workspaces are the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import git, make_project

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


@pytest.fixture
def moved(cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A project that was moved after a job had worked in a workspace of it, and the job."""
    job = str(cli("run", "chat", "-p", "work", "--json").data["job_id"])
    elsewhere = project.rename(project.with_name(f"{project.name}-moved"))
    monkeypatch.chdir(elsewhere)
    return elsewhere, job


@pytest.mark.parametrize("verb", ["apply", "merge"])
def test_the_changes_of_a_job_come_home_after_its_project_was_moved(
    cli: Cli, moved: tuple[Path, str], verb: str
) -> None:
    project, job = moved

    done = cli("jobs", verb, job)

    assert done.code == 0, done.err
    assert (project / "log").read_text() == "work\n"


def test_a_session_goes_on_in_its_workspace_after_its_project_was_moved(
    cli: Cli, moved: tuple[Path, str]
) -> None:
    project, job = moved
    session = cli("jobs", "show", job, "--json").data["session_id"]

    again = cli("run", "chat", "-p", "more", "--json").data

    shown = cli("jobs", "show", again["job_id"], "--json").data
    assert shown["session_id"] == session
    assert shown["workspace"]["id"] == session
    assert (project / ".nightherd-workspaces" / session / "log").read_text() == "work\nmore\n"
    assert cli("doctor").code == 0


def test_a_fork_has_its_files_after_its_project_was_moved(
    cli: Cli, moved: tuple[Path, str]
) -> None:
    project, job = moved
    session = cli("jobs", "show", job, "--json").data["session_id"]

    cli("session", "fork", session, "--run", "-p", "fork", "-q")

    fork = cli("jobs", "list", "--json").data[0]
    log = project / ".nightherd-workspaces" / fork["workspace_id"] / "log"
    assert log.read_text() == "work\nfork\n"


def test_a_workspace_of_a_moved_project_is_removed_with_its_worktree(
    cli: Cli, moved: tuple[Path, str]
) -> None:
    project, job = moved
    session = cli("jobs", "show", job, "--json").data["session_id"]

    done = cli("workspace", "clean", session, "--force")

    assert done.code == 0, done.err
    assert not (project / ".nightherd-workspaces" / session).exists()
    assert session not in git(project, "worktree", "list")
    assert cli("doctor").code == 0
