"""`jobs diff`: what a job changed, as a patch that git takes, a summary, names, and a document."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import git, make_project, say


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    components.program("git")
    return make_project(fleet)


def run(cli: Cli, *arguments: str) -> str:
    return str(cli("run", *arguments, "--json").data["job_id"])


def raw_diff(project: Path, *arguments: str) -> bytes:
    """What the command writes, byte for byte."""
    line = [sys.executable, "-m", "nightherd", "jobs", "diff", *arguments]
    return subprocess.run(line, cwd=project, check=True, capture_output=True).stdout


def test_the_patch_of_a_job_is_what_git_applies(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")

    patch = cli("jobs", "diff", job)
    (project / "job.patch").write_text(patch.out)
    git(project, "apply", "job.patch")

    assert patch.code == 0
    assert (project / "app.txt").read_text() == "one\ntwo\nthree\n"
    assert (project / "new file.txt").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("turn", "names"),
    [("1", ["app.txt"]), ("2", []), ("3", ["new file.txt"]), ("4", [])],
)
def test_a_turn_shows_what_that_turn_changed(
    cli: Cli, project: Path, turn: str, names: list[str]
) -> None:
    job = run(cli, "coder")

    shown = cli("jobs", "diff", job, "--turn", turn, "--name-only")

    assert shown.out.splitlines() == names
    assert (f"turn {turn} of job {job} changed no files" in shown.err) is (not names)


def test_a_turn_that_was_not_is_an_error(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")

    result = cli("jobs", "diff", job, "--turn", "9")

    assert (result.code, result.out) == (3, "")
    assert f"job {job} has 4 turns" in result.err


def test_stat_and_document_have_every_file(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")

    stat = cli("jobs", "diff", job, "--stat").out
    document = cli("jobs", "diff", job, "--json").data
    brief = cli("jobs", "diff", job, "--stat", "--json").data

    assert "2 files changed, 2 insertions(+)" in stat
    assert document["files"] == [
        {"path": "app.txt", "status": "modified", "added": 1, "removed": 0, "old_path": None},
        {"path": "new file.txt", "status": "added", "added": 1, "removed": 0, "old_path": None},
    ]
    assert document["patch"] == cli("jobs", "diff", job).out
    assert (document["job_id"], document["workspace"], document["turn"]) == (job, job, None)
    assert brief == {key: value for key, value in document.items() if key != "patch"}


def test_each_job_of_a_session_has_its_own_changes_and_all_has_everything(
    cli: Cli, project: Path
) -> None:
    first, second = say(cli, "echo first > a.txt"), say(cli, "echo second > b.txt")

    names = [
        cli("jobs", "diff", job, *more, "--name-only").out.splitlines()
        for job, more in ((first, ()), (second, ()), (second, ("--all",)))
    ]

    assert names == [["a.txt"], ["b.txt"], ["a.txt", "b.txt"]]


def test_commits_of_the_agent_are_part_of_the_diff(cli: Cli, project: Path) -> None:
    job = run(cli, "shell", "-p", "echo x > c.txt; git add c.txt; git commit -qm work; echo y > d")

    assert cli("jobs", "diff", job, "--name-only").out.splitlines() == ["c.txt", "d"]


def test_the_diff_stays_when_the_workspace_is_removed(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    before = raw_diff(project, job)

    assert cli("workspace", "clean", job, "--force").code == 0

    assert raw_diff(project, job) == before
    assert not (project / ".nightherd-workspaces" / job).exists()


def test_a_job_that_waits_shows_its_last_snapshot_and_says_so(cli: Cli, project: Path) -> None:
    job = run(cli, "waiting")

    shown = cli("jobs", "diff", job)

    assert "+four" in shown.out
    assert f"job {job} is suspended: this is as of its last snapshot" in shown.err


def test_files_that_no_snapshot_holds_are_named(cli: Cli, project: Path) -> None:
    job = run(cli, "shell", "-p", "git init -q inner; echo deep > inner/file; echo flat > flat")

    shown = cli("jobs", "diff", job, "--name-only")

    assert shown.out.splitlines() == ["flat"]
    assert "not in the snapshot, and so not shown: 1 file: inner" in shown.err
    assert cli("jobs", "diff", job, "--json").data["left_out_count"] == 1


def test_a_job_without_a_workspace_is_told_why_and_what_to_set(cli: Cli, project: Path) -> None:
    job = run(cli, "plain", "-p", "true")

    result = cli("jobs", "diff", job)

    assert result.code == 3
    assert f"agent 'plain' works in its directory {project} itself (mode: shared)" in result.err
    assert "try: set `mode: worktree`" in result.err


def test_bytes_and_names_of_any_kind_come_out_as_they_are(cli: Cli, project: Path) -> None:
    line = r"printf 'caf\351\n' > latin; printf x > $(printf 'a\nb'); printf y > $(printf 'n\377')"
    job = run(cli, "shell", "-p", line.replace("> $(", '> "$(').replace("')", "')\""))

    patch = raw_diff(project, job)
    names = raw_diff(project, job, "--name-only").decode().splitlines()
    (project / "job.patch").write_bytes(patch)
    git(project, "apply", "job.patch")

    assert b"+caf\xe9\n" in patch
    assert names == ['"a\\nb"', "latin", '"n\\377"']
    assert (project / "latin").read_bytes() == b"caf\xe9\n"
    assert (project / "a\nb").read_text() == "x"
    assert [one["path"] for one in cli("jobs", "diff", job, "--json").data["files"]] == [
        "a\nb",
        "latin",
        "n\\xff",
    ]


def test_a_patch_on_a_terminal_is_coloured_and_cannot_control_it(cli: Cli, project: Path) -> None:
    job = run(cli, "shell", "-p", r"printf '\033]0;title\007--- not a header\n' > evil.txt")
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "nightherd", "jobs", "diff", job],
        cwd=project,
        env={**os.environ, "TERM": "xterm"},
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000)
    os.close(ours)

    assert b"\x1b[32m+" in shown
    assert b"\x1b[1m+++ b/evil.txt" in shown
    assert b"\x1b]0;" not in shown
    assert b"\x07" not in shown


@pytest.mark.parametrize(
    "options", [("--stat", "--name-only"), ("--turn", "1", "--all"), ("--turn", "0")]
)
def test_options_that_exclude_each_other_are_refused(
    cli: Cli, project: Path, options: tuple[str, ...]
) -> None:
    job = run(cli, "coder")

    assert cli("jobs", "diff", job, *options).code == 2


def test_two_forks_of_a_session_are_compared_by_their_files(cli: Cli, project: Path) -> None:
    say(cli, "echo base > base.txt")
    original = cli("session", "list", "--json").data[0]["id"]
    forks = []
    for name in ("left", "right"):
        fork = cli(
            "session", "fork", original, "--run", "-p", f"echo {name} > {name}.txt", "--json"
        )
        forks.append(fork.data["session_id"])

    compared = cli("session", "compare", *forks)
    patch = cli("session", "compare", *forks, "--diff")
    document = cli("session", "compare", *forks, "--diff", "--json").data

    assert "left.txt" in compared.out
    assert "2 files changed, 1 insertion(+), 1 deletion(-)" in compared.out
    assert "+right" not in compared.out
    assert "-left\n" in patch.out
    assert "+right\n" in patch.out
    assert [one["path"] for one in document["files"]] == ["left.txt", "right.txt"]
    assert "+right\n" in document["patch"]


def test_a_fork_that_nothing_was_said_in_has_the_files_of_its_session(
    cli: Cli, project: Path
) -> None:
    say(cli, "echo base > base.txt")
    original = cli("session", "list", "--json").data[0]["id"]
    fork = cli("session", "fork", original).out.strip()

    assert "the same files" in cli("session", "compare", original, fork).out


def test_sessions_without_workspaces_are_compared_without_files(cli: Cli, project: Path) -> None:
    for _ in range(2):
        run(cli, "plain", "-p", "true")
    one, other = (session["id"] for session in cli("session", "list", "--json").data[:2])

    compared = cli("session", "compare", one, other)

    assert compared.code == 0
    assert "their files cannot be compared: both sessions need a workspace" in compared.err
    assert cli("session", "compare", one, other, "--json").data["files"] is None
