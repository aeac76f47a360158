"""`workspace clean` and retention: what goes, what stays, and why."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from nightherd.model.workspaces.changes import NoteWorkspace, RemoveWorkspace
from surfaces.drivers import Cli, Shell
from surfaces.test_agents_may_not_widen import HIDDEN, NIGHTHERD
from workspace_fleet import apply, git, land, row


def run(cli: Cli, *arguments: str) -> str:
    return str(cli("run", *arguments, "--json").data["job_id"])


def is_there(project: Path, workspace_id: str) -> bool:
    return (project / ".nightherd-workspaces" / workspace_id).exists()


def worktrees(project: Path) -> str:
    return git(project, "worktree", "list")


def test_a_dirty_one_is_refused_with_what_would_be_lost(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")

    result = cli("workspace", "clean", job)
    document = cli("workspace", "clean", job, "--json")

    assert result.code == document.code == 5
    assert f"kept {job}: 2 changed files not merged" in result.err
    assert f"nightherd workspace clean {job} --force" in result.err
    assert document.data["kept"] == [{"id": job, "reason": "2 changed files not merged"}]
    assert document.data["removed"] == []
    assert is_there(project, job)


def test_with_force_it_goes_and_its_snapshots_stay(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")

    result = cli("workspace", "clean", job, "--force")

    assert (result.code, result.out) == (0, f"{job}\n")
    assert "1 workspace removed, " in result.err
    assert not is_there(project, job)
    assert job not in worktrees(project)
    assert row(project, job).status == "removed"
    assert "+three" in cli("jobs", "diff", job).out
    assert git(project, "status", "--porcelain") == ""


def test_files_that_no_snapshot_holds_are_counted_too(cli: Cli, project: Path) -> None:
    job = run(cli, "shell", "-p", "git init -q inner; echo deep > inner/file")

    result = cli("workspace", "clean", job)

    assert result.code == 5
    assert f"kept {job}: 1 file that no snapshot holds" in result.err


def test_what_changed_after_the_job_counts(cli: Cli, project: Path) -> None:
    job = run(cli, "keeper", "-p", "true")
    assert cli("workspace", "show", job, "--json").data["state"] == "clean"
    (project / ".nightherd-workspaces" / job / "mine.txt").write_text("mine\n")

    result = cli("workspace", "clean", job)

    assert result.code == 5
    assert "1 changed file not merged" in result.err


def test_one_without_changes_goes_whatever_keep_says(cli: Cli, project: Path) -> None:
    job = run(cli, "keeper", "-p", "true")

    assert cli("workspace", "clean", job).code == 0
    assert not is_there(project, job)
    assert cli("workspace", "clean", job).code == 0


def test_one_that_a_job_works_in_is_never_removed(cli: Cli, project: Path) -> None:
    job = run(cli, "waiting")

    for options in ((job, "--force"), ("--all", "--force")):
        result = cli("workspace", "clean", *options)
        assert result.code == 5
        assert f"kept {job}: job {job} (suspended) works in it" in result.err
    assert is_there(project, job)


def test_without_names_it_removes_what_keep_does_not_keep(cli: Cli, project: Path) -> None:
    merged, dirty = run(cli, "coder"), run(cli, "coder")
    always = run(cli, "keeper", "-p", "true")
    land(project, merged)

    dry = cli("workspace", "clean", "--dry-run")
    assert (dry.code, dry.out) == (0, f"{merged}\n")
    assert is_there(project, merged)
    result = cli("workspace", "clean")

    assert (result.code, result.out) == (0, f"{merged}\n")
    left = {one["id"] for one in cli("workspace", "list", "--json").data}
    assert left == {dirty, always}


@pytest.mark.parametrize("verb", ["merge", "apply"])
def test_what_was_brought_home_goes(cli: Cli, project: Path, verb: str) -> None:
    job = run(cli, "coder")
    assert cli("jobs", verb, job).code == 0
    assert cli("workspace", "list", "--json").data[0]["state"].startswith(verb[:4])

    result = cli("workspace", "clean")

    assert (result.code, result.out) == (0, f"{job}\n")
    assert (project / "app.txt").read_text() == "one\ntwo\nthree\n"
    assert job not in git(project, "worktree", "list")


def test_without_names_it_leaves_what_a_person_changed(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    land(project, job)
    (project / ".nightherd-workspaces" / job / "mine.txt").write_text("mine\n")

    for _ in range(2):
        result = cli("workspace", "clean")
        assert result.code == 0
        assert f"kept {job}: its files changed after its last job ended" in result.err
    assert is_there(project, job)
    assert cli("workspace", "clean", job).code == 5


def test_merged_and_all_choose_and_older_than_narrows(cli: Cli, project: Path) -> None:
    merged, dirty = run(cli, "coder"), run(cli, "coder")
    always = run(cli, "keeper", "-p", "echo x > x")
    land(project, merged)
    land(project, always)

    assert cli("workspace", "clean", "--merged", "--older-than", "1h").out == ""
    age(project, always)
    assert cli("workspace", "clean", "--merged", "--older-than", "1h").out == f"{always}\n"
    every = cli("workspace", "clean", "--all")

    assert (every.code, every.out) == (5, f"{merged}\n")
    assert f"kept {dirty}" in every.err
    assert cli("workspace", "clean", "--all", "--force").out == f"{dirty}\n"


def age(project: Path, workspace_id: str) -> None:
    """The workspace was last used two hours ago."""
    known = row(project, workspace_id)
    apply(
        project,
        NoteWorkspace(workspace_id=known.id, at=known.last_used_at - timedelta(hours=2)),
    )


def test_a_removal_that_was_cut_off_is_finished(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    known = row(project, job)
    apply(project, RemoveWorkspace(workspace_id=known.id, at=known.last_used_at))

    assert cli("workspace", "list", "--json").data[0]["state"] == "removing"
    assert cli("workspace", "clean").out == f"{job}\n"
    assert not is_there(project, job)


@pytest.mark.parametrize(
    "options",
    [
        ("--force",),
        ("--merged", "--all"),
        ("JOB", "--all"),
        ("JOB", "--older-than", "1d"),
        ("--merged", "--force"),
        ("--older-than", "soon"),
    ],
)
def test_what_does_not_go_together_is_refused(
    cli: Cli, project: Path, options: tuple[str, ...]
) -> None:
    job = run(cli, "coder")

    given = [option.replace("JOB", job) for option in options]

    assert cli("workspace", "clean", *given).code == 2
    assert is_there(project, job)


def test_an_unknown_name_removes_nothing(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")

    result = cli("workspace", "clean", job, "job-1999-01-01-aaaaaa", "--force")

    assert result.code == 3
    assert is_there(project, job)


@pytest.mark.parametrize("command", [NIGHTHERD, HIDDEN])
def test_an_agent_cannot_remove_workspaces(cli: Cli, project: Path, command: str) -> None:
    job = run(cli, "coder")
    line = f"cd {project}; {command} workspace clean {job} --force"

    result = cli("run", "plain", "-p", line)

    assert "only a person removes workspaces, and an agent started this process" in result.out
    assert is_there(project, job)


def test_an_agent_cannot_remove_workspaces_through_the_daemon(
    cli: Cli, shell: Shell, project: Path
) -> None:
    job = run(cli, "coder")
    assert shell.run("start", "--detach").code == 0
    line = f"cd {project}; {HIDDEN} api DELETE '/v1/workspaces/{job}?force=true'"

    result = cli("run", "plain", "-p", line)
    shell.run("stop")

    assert "only a person may remove workspaces, and an agent sent the request" in result.out
    assert is_there(project, job)


def test_a_removed_workspace_is_made_again_for_the_next_job(cli: Cli, project: Path) -> None:
    job = run(cli, "chat", "-p", "echo first > a.txt")
    session = cli("jobs", "show", job, "--json").data["session_id"]
    assert cli("jobs", "cancel", job).code == 0
    assert cli("workspace", "clean", session, "--force").code == 0

    run(cli, "chat", "-p", "cat a.txt > b.txt")

    where = project / ".nightherd-workspaces" / session
    assert (where / "b.txt").read_text() == "first\n"


def test_retention_plans_and_removes_workspaces(cli: Cli, project: Path) -> None:
    merged, dirty = run(cli, "coder"), run(cli, "coder")
    land(project, merged)

    plan = cli("retention", "plan")
    planned = cli("retention", "plan", "--json").document["workspaces"]
    applied = cli("retention", "apply")

    assert f"{merged}  coder" in plan.out
    assert "keep: until_merged" in plan.out
    assert [one["id"] for one in planned] == [merged]
    assert "1 workspace (" in applied.err
    assert not is_there(project, merged)
    assert is_there(project, dirty)
    assert cli("retention", "plan", "--json").document["workspaces"] == []


def test_retention_of_one_job_leaves_workspaces_alone(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    land(project, job)

    assert cli("retention", "plan", "--job", job, "--json").document["workspaces"] == []
    cli("retention", "apply", "--job", job)

    assert is_there(project, job)


def test_retention_says_which_workspace_it_kept(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    land(project, job)
    (project / ".nightherd-workspaces" / job / "mine.txt").write_text("mine\n")

    applied = cli("retention", "apply")

    assert applied.code == 0
    assert f"kept workspace {job}: its files changed after its last job ended" in applied.err
