"""`workspace list`, `show` and `open`: what a person and a program learn about the directories of jobs."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from surfaces.drivers import Cli
from workspace_fleet import git, land, row, say


def run(cli: Cli, *arguments: str) -> str:
    """Run a job, and return its id."""
    return str(cli("run", *arguments, "--json").data["job_id"])


def directory_of(project: Path, workspace_id: str) -> Path:
    return project / ".nightherd-workspaces" / workspace_id


def test_a_job_in_a_worktree_leaves_the_directory_of_its_agent_alone(
    cli: Cli, project: Path
) -> None:
    job = run(cli, "coder")

    assert (project / "app.txt").read_text() == "one\ntwo\n"
    assert git(project, "status", "--porcelain") == ""
    assert (directory_of(project, job) / "app.txt").read_text() == "one\ntwo\nthree\n"
    shown = cli("jobs", "show", job)
    assert f"workspace {job} (worktree, dirty, branch nightherd/coder/{job})" in shown.out
    assert cli("jobs", "show", job, "--json").data["workspace"]["state"] == "dirty"


def test_list_shows_state_size_and_branch_and_adds_the_sizes_up(cli: Cli, project: Path) -> None:
    first, second = run(cli, "coder"), run(cli, "keeper", "-p", "true")

    shown = cli("workspace")
    listed = cli("workspace", "list", "--json")

    lines = shown.out.splitlines()
    assert " ".join(lines[0].split()) == "ID AGENT MODE STATE SIZE LAST USED JOB BRANCH"
    assert [line.split()[0] for line in lines[1:]] == [second, first]
    assert ["± dirty" in line for line in lines[1:]] == [False, True]
    assert f"nightherd/coder/{first}" in lines[2]
    assert "in all workspaces" in shown.err
    rows = listed.data
    assert [one["state"] for one in rows] == ["clean", "dirty"]
    assert listed.document["total_size_bytes"] == sum(one["size_bytes"] for one in rows) > 0
    assert [one["kept_by"] for one in rows] == ["always", "not_merged"]


def test_list_filters_pages_and_shows_removed_ones_only_when_asked(cli: Cli, project: Path) -> None:
    assert "no workspaces" in cli("workspace", "list").err
    first, second = run(cli, "coder"), run(cli, "coder")
    gone = run(cli, "shell", "-p", "true")

    assert [one["id"] for one in cli("workspace", "list", "--json").data] == [second, first]
    every = cli("workspace", "list", "--all", "--json").data
    assert [(one["id"], one["state"]) for one in every] == [
        (gone, "removed"),
        (second, "dirty"),
        (first, "dirty"),
    ]
    page = cli("workspace", "list", "--limit", "1")
    more = page.err.splitlines()[-1].removeprefix("more: nightherd ").split()
    assert [one["id"] for one in cli(*more, "--json").data] == [first]
    assert cli("workspace", "list", "--agent", "keeper", "--json").data == []


@pytest.mark.parametrize("by", ["workspace", "job", "session", "end"])
def test_show_says_where_it_is_what_changed_and_what_keeps_it(
    cli: Cli, project: Path, by: str
) -> None:
    job = run(cli, "coder")
    session = cli("jobs", "show", job, "--json").data["session_id"]
    reference = {"workspace": job, "job": job, "session": session, "end": job[-6:]}[by]

    shown = cli("workspace", "show", reference)

    assert f"directory  {directory_of(project, job)}" in shown.out
    assert f"branch     nightherd/coder/{job}" in shown.out
    assert "base       main at " in shown.out
    assert "keep: until_merged; it has changes that were not applied, merged or pushed" in shown.out
    assert "changes    2 files" in shown.out
    assert "modified     app.txt (+1 -0)" in shown.out
    assert "added        new file.txt (+1 -0)" in shown.out
    assert f"nightherd jobs merge {job}" in shown.err
    assert f"nightherd workspace clean {job} --force" in shown.err


def test_show_for_programs_has_the_directory_and_the_changes(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")

    data = cli("workspace", "show", "@last", "--json").data

    assert data["directory"] == str(directory_of(project, job))
    assert data["is_there"] is True
    assert data["size_bytes"] > 0
    assert data["jobs"] == [{"id": job, "status": "completed"}]
    assert [(one["path"], one["status"]) for one in data["changes"]] == [
        ("app.txt", "modified"),
        ("new file.txt", "added"),
    ]


def test_show_of_one_that_was_merged_says_so(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    land(project, job)

    shown = cli("workspace", "show", job)

    assert "state      ✔ merged" in shown.out
    assert "kept by    nothing (keep: until_merged)" in shown.out
    assert f"remove it: nightherd workspace clean {job}\n" in shown.err


def test_a_job_in_its_agents_directory_has_no_workspace_and_learns_why(
    cli: Cli, project: Path
) -> None:
    job = run(cli, "plain", "-p", "true")

    result = cli("workspace", "show", job)

    assert result.code == 3
    assert f"job {job} has no workspace" in result.err
    assert "mode: worktree" in result.err
    assert "workspace" not in cli("jobs", "show", job).out


@pytest.mark.parametrize("options", [(), ("--path",)])
def test_open_prints_the_directory_where_there_is_no_terminal(
    cli: Cli, project: Path, options: tuple[str, ...]
) -> None:
    job = run(cli, "coder")

    opened = cli("workspace", "open", job, *options)

    assert (opened.code, opened.out, opened.err) == (0, f"{directory_of(project, job)}\n", "")


def test_open_starts_an_editor_with_the_directory(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run(cli, "coder")
    editor = project / "editor.sh"
    editor.write_text('#!/bin/sh\npwd > edited.ignored\necho "$@" >> edited.ignored\nexit 7\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", f"{editor} --wait")

    opened = cli("workspace", "open", job, "--editor")

    where = directory_of(project, job)
    assert opened.code == 7
    assert (where / "edited.ignored").read_text().splitlines() == [str(where), f"--wait {where}"]


def test_open_without_an_editor_says_what_to_set(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run(cli, "coder")
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)

    opened = cli("workspace", "open", job, "--editor")

    assert opened.code == 2
    assert "neither VISUAL nor EDITOR is set" in opened.err
    assert cli("workspace", "open", job, "--editor", "--path").code == 2


def test_open_on_a_terminal_starts_a_shell_there(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    login = project / "login.sh"
    login.write_text("#!/bin/sh\npwd\n")
    login.chmod(0o755)
    ours, theirs = pty.openpty()
    opened = subprocess.run(
        [sys.executable, "-m", "nightherd", "workspace", "open", job],
        cwd=project,
        env={**os.environ, "SHELL": str(login)},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=True,
    )
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)

    assert said.strip() == str(directory_of(project, job))
    assert b"a shell in " in opened.stderr


def test_open_of_a_removed_one_says_how_to_get_its_files_back(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    session = cli("jobs", "show", job, "--json").data["session_id"]
    assert cli("workspace", "clean", job, "--force").code == 0

    opened = cli("workspace", "open", job)

    assert opened.code == 5
    assert "was removed" in opened.err
    assert f"nightherd jobs diff {job}" in opened.err
    assert f"nightherd session fork {session}" in opened.err


def test_open_and_show_of_a_lost_directory_say_that_it_is_not_there(
    cli: Cli, project: Path
) -> None:
    job = run(cli, "coder")
    shutil.rmtree(directory_of(project, job))

    assert cli("workspace", "open", job).code == 5
    assert "(not there)" in cli("workspace", "show", job).out


def test_a_persistent_session_keeps_one_workspace_for_its_jobs(cli: Cli, project: Path) -> None:
    first, second = say(cli, "echo first > a.txt"), say(cli, "echo second > b.txt")

    (listed,) = cli("workspace", "list", "--json").data

    assert listed["scope"] == "session"
    assert listed["id"].startswith("sess-")
    assert listed["kept_by"] == "owner"
    assert listed["job_id"] == second
    assert row(project, listed["id"]).job_id == second
    jobs = cli("workspace", "show", first, "--json").data["jobs"]
    assert [one["id"] for one in jobs] == [second, first]
