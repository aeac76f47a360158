"""Doctor and workspaces: lost, half made and half removed ones are found and put right; files are never removed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from components import Components
from nightherd.model.workspaces.changes import RemoveWorkspace, UseWorkspace
from nightherd.model.workspaces.workspace import WorkspaceId, WorkspaceStatus
from nightherd.testing.state_values import job_id, settle, start, submit
from surfaces.drivers import Cli
from workspace_fleet import apply, git, make_project, row


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    return make_project(fleet)


def run(cli: Cli, *arguments: str) -> str:
    return str(cli("run", *arguments, "--json").data["job_id"])


def findings(cli: Cli, *options: str) -> list[dict[str, Any]]:
    checks = cli("doctor", "--json", *options).data["checks"]
    (check,) = [check for check in checks if check["name"] == "workspaces"]
    return list(check["findings"])


def messages(cli: Cli, *options: str) -> list[str]:
    return [one["message"] for one in findings(cli, *options)]


def directory(project: Path, workspace_id: str) -> Path:
    return project / ".nightherd-workspaces" / workspace_id


def test_workspaces_that_are_as_recorded_are_fine(cli: Cli, project: Path) -> None:
    run(cli, "coder")
    run(cli, "waiting")
    gone = run(cli, "coder")
    assert cli("workspace", "clean", gone, "--force").code == 0

    assert findings(cli) == []


def test_a_lost_directory_is_found_and_recorded_as_removed(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    shutil.rmtree(directory(project, job))

    (found,) = findings(cli)
    fixed = findings(cli, "--fix")

    assert found["message"] == f"workspace {job} of agent 'coder' has lost its directory"
    assert (found["level"], found["is_fixable"]) == ("warning", True)
    assert [one["is_fixed"] for one in fixed] == [True]
    assert row(project, job).status is WorkspaceStatus.REMOVED
    assert findings(cli) == []
    assert job not in git(project, "worktree", "list")
    assert "+three" in cli("jobs", "diff", job).out


def test_a_half_removed_one_is_finished(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    known = row(project, job)
    apply(project, RemoveWorkspace(workspace_id=known.id, at=known.last_used_at))
    directory(project, job).rename(directory(project, f"{job}.removing"))

    assert messages(cli) == [f"workspace {job} of agent 'coder' is half removed"]
    findings(cli, "--fix")

    assert row(project, job).status is WorkspaceStatus.REMOVED
    assert not directory(project, f"{job}.removing").exists()


def test_one_that_no_job_has_worked_in_is_removed(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    template = row(project, job)
    proposed = replace(template, id=WorkspaceId(job_id(7)), tree=None, base_tree=None, store=None)
    apply(project, submit(7), start(7))
    apply(
        project,
        UseWorkspace(
            job_id=job_id(7), epoch=1, workspace=proposed, directory="/w", at=template.created_at
        ),
        settle(7),
    )
    state = project / ".nightherd" / "workspaces" / job_id(7)
    state.mkdir(parents=True)
    (state / "making").touch()
    half = directory(project, job_id(7))
    half.mkdir()
    (half / "app.txt").write_text("one\n")

    assert messages(cli) == [f"workspace {job_id(7)} of agent 'coder' is half made"]
    findings(cli, "--fix")

    assert not half.exists()
    assert directory(project, job).exists()


def test_a_damaged_one_with_files_is_reported_and_left(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    (directory(project, job) / ".git").unlink()
    shutil.rmtree(project / ".nightherd" / "workspaces" / job)

    (found,) = findings(cli, "--fix")

    assert "is damaged" in found["message"]
    assert (found["is_fixable"], found["is_fixed"]) == (False, False)
    assert (directory(project, job) / "app.txt").read_text() == "one\ntwo\nthree\n"


def test_directories_and_worktrees_that_no_row_knows_are_reported_and_left(
    cli: Cli, project: Path
) -> None:
    run(cli, "coder")
    stray = directory(project, "sess-unknown1")
    git(project, "worktree", "add", "--quiet", "--detach", str(stray))

    found = messages(cli, "--fix")

    assert found == [
        f"no workspace is on record for this directory: {stray}",
        f"the repository of {project} has a worktree of nightherd that is not on record: {stray}",
    ]
    assert (stray / "app.txt").exists()


def test_a_workspace_of_an_open_job_is_left_to_its_worker(cli: Cli, project: Path) -> None:
    job = run(cli, "waiting")
    shutil.rmtree(directory(project, job))

    assert findings(cli, "--fix") == []


def test_an_interrupted_landing_is_named(cli: Cli, project: Path) -> None:
    run(cli, "coder")
    record = project / ".nightherd" / "landing" / "half-way.json"
    record.parent.mkdir(exist_ok=True)
    record.write_text("{}")

    (found,) = findings(cli)

    assert found["message"] == "applying or merging the changes of a job was interrupted half-way"
    assert (found["path"], found["is_fixable"]) == (str(record), False)
