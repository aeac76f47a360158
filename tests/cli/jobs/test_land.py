"""`jobs apply`, `merge` and `push`: what a job changed in its workspace is brought home, by a person."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import git, make_project, row, say


@pytest.fixture
def project(fleet: Path, components: Components, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with agents that work in worktrees of it; git knows nobody."""
    components.program("git")
    home = fleet / ".nightherd-home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return make_project(fleet)


@pytest.fixture
def remote(project: Path) -> Path:
    bare = project / ".nightherd-remote.git"
    git(project, "init", "-q", "--bare", str(bare))
    git(project, "remote", "add", "origin", f"file://{bare}")
    return bare


def run(cli: Cli, *arguments: str) -> str:
    return str(cli("run", *arguments, "--json").data["job_id"])


def test_changes_are_applied_to_the_files_and_nothing_is_committed(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")

    applied = cli("jobs", "apply", job)

    assert (applied.code, applied.err) == (0, "")
    assert applied.out == f"applied to {project}: 2 files\n  app.txt\n  new file.txt\n"
    assert (project / "app.txt").read_text() == "one\ntwo\nthree\n"
    assert git(project, "status", "--porcelain") == ' M app.txt\n?? "new file.txt"'
    workspace = row(project, job)
    assert (workspace.landed, workspace.landed_tree) == ("applied", workspace.tree)
    assert not workspace.is_dirty

    again = cli("jobs", "apply", job)
    assert (again.code, again.out) == (0, f"already applied: {project} has these changes\n")


def test_dry_runs_change_nothing_and_record_nothing(cli: Cli, project: Path, remote: Path) -> None:
    job = run(cli, "coder")
    before = git(project, "for-each-ref")

    applied = cli("jobs", "apply", job, "--dry-run")
    merged = cli("jobs", "merge", job, "--dry-run")
    pushed = cli("jobs", "push", job, "--dry-run")

    assert applied.out.splitlines()[0] == f"would be applied to {project}: 2 files"
    assert merged.out.startswith("would be merged into main: 2 files, fast-forward to ")
    assert pushed.out.startswith(
        f"would be pushed to origin nightherd/coder/{job}: 2 files, commit "
    )
    assert git(project, "for-each-ref") == before
    assert git(remote, "for-each-ref") == ""
    assert git(project, "status", "--porcelain") == ""
    assert row(project, job).landed is None


def test_conflicts_are_listed_with_exit_code_5(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    (project / "app.txt").write_text("one\ntwo\nIII\n")

    applied = cli("jobs", "apply", job)

    assert (applied.code, applied.out) == (5, "")
    assert applied.err == (
        f"nightherd: 1 file conflicts with {project}; nothing was changed\n"
        f"  app.txt\n  try: nightherd jobs diff {job}\n"
    )
    assert not (project / "new file.txt").exists()
    assert row(project, job).landed is None

    git(project, "commit", "-qam", "mine")
    merged = cli("jobs", "merge", job)
    assert merged.code == 5
    assert "1 file conflicts with main; nothing was changed\n  app.txt\n" in merged.err
    assert f"try: nightherd jobs resume {job} -p 'Merge main into your branch" in merged.err
    document = cli("jobs", "merge", job, "--json")
    assert (document.code, document.data["conflicts"]) == (5, ["app.txt"])


def test_changes_are_merged_into_the_base(cli: Cli, project: Path) -> None:
    job = run(cli, "coder", "-p", "Add a third line\nand say hello")

    merged = cli("jobs", "merge", job)

    commit = git(project, "rev-parse", "main")
    assert merged.code == 0
    assert merged.out.splitlines()[0] == f"merged into main: 2 files, fast-forward to {commit[:12]}"
    assert git(project, "log", "-1", "--format=%B") == f"Add a third line\n\nnightherd job {job}\n"
    assert git(project, "status", "--porcelain") == ""
    assert row(project, job).landed == "merged"
    assert cli("jobs", "merge", job).out == "already merged: main has these changes\n"


def test_branch_message_and_merge_commit_are_chosen(cli: Cli, project: Path) -> None:
    git(project, "branch", "stable")
    job = run(cli, "coder")

    merged = cli("jobs", "merge", job, "--into", "stable", "-m", "By hand", "--no-ff", "--json")

    assert merged.code == 0
    assert merged.document["schema"] == "nightherd/v1/landing"
    assert merged.data == {
        "job_id": job,
        "workspace": job,
        "how": "merged",
        "is_dry_run": False,
        "target": "stable",
        "is_nothing": False,
        "files": ["app.txt", "new file.txt"],
        "conflicts": [],
        "branch": f"nightherd/coder/{job}",
        "commit": git(project, "rev-parse", "stable"),
        "is_fast_forward": False,
        "url": None,
        "finished": [],
    }
    assert git(project, "log", "-1", "--format=%s", "stable^2") == "By hand"
    assert git(project, "log", "--format=%s", "main") == "first"


def test_changes_are_pushed_and_the_page_for_a_pull_request_is_printed(
    cli: Cli, project: Path, remote: Path
) -> None:
    home = project / ".nightherd-home" / ".gitconfig"
    home.write_text(f'[url "file://{remote}"]\n\tinsteadOf = https://github.com/acme/rocket\n')
    git(project, "remote", "set-url", "origin", "https://github.com/acme/rocket")
    job = run(cli, "coder")

    pushed = cli("jobs", "push", job, "--pr")

    branch = f"nightherd/coder/{job}"
    commit = git(remote, "rev-parse", branch)
    assert pushed.code == 0
    assert pushed.out == (
        f"pushed to origin {branch}: 2 files, commit {commit[:12]}\n  app.txt\n  new file.txt\n"
        f"https://github.com/acme/rocket/compare/main...{branch}?expand=1\n"
    )
    assert row(project, job).landed == "pushed"
    again = cli("jobs", "push", job)
    assert again.out == f"already pushed: origin {branch} has these changes\n"


def test_remote_whose_pages_are_not_known_is_pushed_to(
    cli: Cli, project: Path, remote: Path
) -> None:
    job = run(cli, "coder")

    pushed = cli("jobs", "push", job, "--pr", "--remote", str(remote))

    assert pushed.code == 0
    assert "no URL is known for pull requests" in pushed.err


def test_work_of_earlier_jobs_in_the_workspace_comes_along_unless_left_out(
    cli: Cli, project: Path
) -> None:
    first, second = say(cli, "echo first > a.txt"), say(cli, "echo second > b.txt")

    only = cli("jobs", "apply", second, "--only-this-job", "--dry-run", "--json").data
    whole = cli("jobs", "apply", second, "--dry-run", "--json").data
    earlier = cli("jobs", "apply", first, "--dry-run", "--json").data

    assert [only["files"], whole["files"], earlier["files"]] == [
        ["b.txt"],
        ["a.txt", "b.txt"],
        ["a.txt"],
    ]
    session = whole["workspace"]
    assert cli("jobs", "apply", second, "--only-this-job").code == 0
    assert row(project, session).is_dirty, "the first job's work is nowhere else"
    assert cli("jobs", "apply", first).code == 0
    assert cli("jobs", "apply", second).out.startswith("already applied")
    assert not row(project, session).is_dirty


def test_more_work_on_the_same_lines_is_applied_on_top_of_what_was_applied(
    cli: Cli, project: Path
) -> None:
    first = say(cli, "echo three >> app.txt")
    assert cli("jobs", "apply", first).code == 0
    second = say(cli, "sed -i s/three/III/ app.txt")

    applied = cli("jobs", "apply", second)

    assert (applied.code, applied.err) == (0, "")
    assert (project / "app.txt").read_text() == "one\ntwo\nIII\n"


def test_earlier_job_is_merged_without_the_later_one(cli: Cli, project: Path) -> None:
    first, _second = say(cli, "echo first > a.txt"), say(cli, "echo second > b.txt")

    assert cli("jobs", "merge", first).code == 0

    assert (project / "a.txt").exists()
    assert not (project / "b.txt").exists()


def test_suspended_job_can_be_brought_home_and_goes_on(cli: Cli, project: Path) -> None:
    job = run(cli, "waiting")

    merged = cli("jobs", "merge", job)

    assert merged.code == 0, merged.err
    assert (project / "app.txt").read_text() == "one\ntwo\nfour\n"
    (item,) = cli("inbox", "--json").data
    assert cli("inbox", "approve", item["id"]).code == 0
    assert cli("worker", "--until-idle").code == 0
    assert cli("jobs", "show", job, "--json").data["status"] == "completed"
    assert cli("jobs", "merge", job).code == 0
    assert (project / "pushed").exists()
    assert git(project, "status", "--porcelain") == ""


@pytest.mark.parametrize("verb", ["apply", "merge", "push"])
def test_job_that_has_not_started_is_refused(cli: Cli, project: Path, verb: str) -> None:
    job = str(cli("run", "coder", "--detach", "--json").data["job_id"])

    result = cli("jobs", verb, job)

    assert (result.code, result.out) == (5, "")
    assert f"job {job} has not started" in result.err


@pytest.mark.parametrize("verb", ["apply", "merge", "push"])
def test_job_without_workspace_says_how_to_get_one(cli: Cli, project: Path, verb: str) -> None:
    job = run(cli, "plain", "-p", "true")

    result = cli("jobs", verb, job)

    assert result.code == 3
    assert "mode: shared" in result.err
    assert "mode: worktree" in result.err


@pytest.mark.parametrize(
    ("verb", "why"),
    [
        ("apply", "jobs apply changes your files"),
        ("merge", "jobs merge changes your branches"),
        ("push", "jobs push uses your credentials"),
    ],
)
def test_agent_cannot_bring_changes_home(cli: Cli, project: Path, verb: str, why: str) -> None:
    job = run(cli, "coder")
    command = f"cd {project} && {sys.executable} -m nightherd jobs {verb} {job} > {project}/said.ignored 2>&1; true"

    run(cli, "plain", "-p", command)

    said = (project / "said.ignored").read_text()
    assert f"{why}, and an agent started this process" in said
    assert row(project, job).landed is None
    assert git(project, "status", "--porcelain") == ""


def test_what_a_killed_command_left_is_finished_first(cli: Cli, project: Path) -> None:
    job = run(cli, "coder")
    folder = project / ".nightherd" / "landing"
    store = row(project, job).store
    (folder / f"{store}-left").mkdir(parents=True)

    assert cli("jobs", "apply", job).code == 0

    assert [path.name for path in folder.iterdir()] == [f"{store}.lock"]
