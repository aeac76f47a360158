"""The agent's directory, cloned from its repository and kept up to date."""

from __future__ import annotations

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest

from engine.yard import until
from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import CloneTerms
from nightherd.workspaces.clones import clone_or_fetch
from nightherd.workspaces.files import LocalWorkspaceFiles
from workspaces.git_server import serving
from workspaces.scene import commit, files_in, git, new_repository, user_state
from workspaces.upstream import Upstream, contents, new_upstream


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    monkeypatch.setenv("HOME", str(tmp_path))
    return new_upstream(tmp_path)


@pytest.mark.parametrize("spelling", ["path", "file"])
def test_a_missing_directory_is_cloned(upstream: Upstream, spelling: str) -> None:
    url = str(upstream.path) if spelling == "path" else upstream.path.as_uri()

    notes = upstream.clone(url=url)

    assert notes == []
    assert files_in(upstream.root) == files_in(upstream.path)
    assert upstream.origin() == upstream.branches()
    assert git(upstream.root, "status", "--porcelain", "--branch") == "## main...origin/main"
    assert git(upstream.root, "remote", "get-url", "origin") == url
    assert git(upstream.root, "rev-parse", "origin/HEAD") == upstream.branches()["main"]
    assert not upstream.staging.exists()
    git(upstream.root, "fsck", "--strict")


@pytest.mark.parametrize(("depth", "commits"), [(1, 1), (2, 2), (0, 3)])
def test_depth_says_how_many_commits_there_are(
    upstream: Upstream, depth: int, commits: int
) -> None:
    upstream.clone(depth=depth)

    assert git(upstream.root, "rev-list", "--count", "HEAD") == str(commits)


def test_another_branch_is_checked_out_when_it_is_the_default(upstream: Upstream) -> None:
    git(upstream.path, "checkout", "-q", "-b", "trunk/next")
    upstream.commit()

    upstream.clone(branch="trunk/next")

    assert git(upstream.root, "symbolic-ref", "--short", "HEAD") == "trunk/next"
    assert (upstream.root / "news.txt").read_text() == "news\n"
    assert git(upstream.root, "pull", "--ff-only") == "Already up to date."


def test_a_branch_that_is_not_there_is_an_error_that_names_those_that_are(
    upstream: Upstream,
) -> None:
    with pytest.raises(WorkspaceError) as caught:
        upstream.clone(branch="master")

    assert caught.value.message == f"{upstream.terms.url} has no branch 'master'"
    assert caught.value.hint == "set working_directory.default_branch to one of: main, side"
    assert not caught.value.can_pass
    assert list((upstream.folder / "work").iterdir()) == []


def test_a_repository_of_the_other_object_format_is_cloned(tmp_path: Path) -> None:
    new_repository(tmp_path / "upstream", {"a": "b\n"}, "--object-format=sha256")
    upstream = Upstream(tmp_path, CloneTerms(url=(tmp_path / "upstream").as_uri()))

    upstream.clone()
    upstream.commit()
    notes = upstream.clone()

    assert notes == []
    assert upstream.origin() == upstream.branches()


def test_the_next_job_fetches_and_touches_nothing_else(upstream: Upstream) -> None:
    upstream.clone()
    commit(upstream.root, {"mine.txt": "mine\n"})
    (upstream.root / "README.md").write_text("changed\n")
    (upstream.root / "staged.txt").write_text("staged\n")
    git(upstream.root, "add", "staged.txt")
    git(upstream.root, "stash", "push", "--quiet", "README.md")
    (upstream.root / "README.md").write_text("changed again\n")
    before = user_state(upstream.root)
    new = upstream.commit()

    notes = upstream.clone()

    after = user_state(upstream.root)
    assert notes == []
    assert upstream.origin() == upstream.branches()
    assert upstream.origin()["main"] == new
    before["refs"], after["refs"] = (
        [ref for ref in one["refs"] if not ref.startswith("refs/remotes/")]
        for one in (before, after)
    )
    assert after == before


def test_what_is_fetched_is_connected_to_what_was_cloned(upstream: Upstream) -> None:
    upstream.clone(depth=1)
    base = upstream.branches()["main"]
    upstream.commit("first.txt")
    upstream.commit("second.txt")

    upstream.clone(depth=1)

    assert git(upstream.root, "merge-base", "HEAD", "origin/main") == base
    git(upstream.root, "fsck", "--strict")


def test_all_commits_are_fetched_once_the_depth_says_so(upstream: Upstream) -> None:
    upstream.clone(depth=1)

    upstream.clone(depth=0)

    assert git(upstream.root, "rev-list", "--count", "HEAD") == "3"
    assert git(upstream.root, "rev-parse", "--is-shallow-repository") == "false"


def test_a_whole_repository_stays_whole(upstream: Upstream) -> None:
    upstream.clone(depth=0)
    upstream.commit()

    upstream.clone(depth=1)

    assert git(upstream.root, "rev-list", "--count", "origin/main") == "4"


def test_force_pushed_deleted_and_nested_branches_are_followed(upstream: Upstream) -> None:
    upstream.clone()
    git(upstream.path, "reset", "--quiet", "--hard", "HEAD~2")
    forced = upstream.commit()
    git(upstream.path, "branch", "-D", "side")
    git(upstream.path, "branch", "side/inner")

    notes = upstream.clone()

    assert notes == []
    assert upstream.origin() == {"main": forced, "side/inner": forced}
    git(upstream.root, "fsck", "--strict")


def test_a_default_branch_that_was_deleted_is_a_note(upstream: Upstream) -> None:
    upstream.clone()
    git(upstream.path, "checkout", "--quiet", "side")
    git(upstream.path, "branch", "-D", "main")

    notes = upstream.clone()

    assert notes == [f"{upstream.terms.url} has no branch 'main' any more"]
    assert list(upstream.origin()) == ["side"]
    assert git(upstream.root, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_a_fetch_that_fails_is_a_note_and_changes_nothing(upstream: Upstream) -> None:
    upstream.clone()
    before = contents(upstream.root)
    upstream.path.rename(upstream.folder / "away")

    (note,) = upstream.clone()

    assert note.startswith(f"'{upstream.root}' is not up to date: {upstream.terms.url} cannot be")
    assert contents(upstream.root) == before


def test_a_clone_that_lost_commits_gets_them_again(upstream: Upstream) -> None:
    upstream.clone()
    tip = upstream.branches()["side"]
    git(upstream.root, "checkout", "--quiet", "--orphan", "new")
    git(upstream.root, "branch", "-D", "main")
    (upstream.root / ".git/shallow").unlink()
    for pack in (upstream.root / ".git/objects/pack").iterdir():
        pack.unlink()
    for folder in (upstream.root / ".git/objects").glob("??"):
        for loose in folder.iterdir():
            loose.unlink()

    notes = upstream.clone()

    assert notes == []
    assert git(upstream.root, "cat-file", "-t", tip) == "commit"


@pytest.mark.parametrize("kind", ["plain", "empty", "other", "none", "worktree", "file", "link"])
def test_a_directory_that_is_no_clone_of_it_is_left_alone(upstream: Upstream, kind: str) -> None:
    root = upstream.root
    root.parent.mkdir()
    if kind in ("plain", "empty"):
        root.mkdir()
        (root / "a").write_text("x") if kind == "plain" else None
    elif kind in ("other", "none"):
        new_repository(root)
        if kind == "other":
            git(root, "remote", "add", "origin", "https://git.example/other")
    elif kind == "worktree":
        git(upstream.path, "remote", "add", "origin", upstream.terms.url)
        git(upstream.path, "worktree", "add", "--quiet", str(root))
    elif kind == "file":
        root.write_text("x")
    else:
        root.symlink_to("nowhere")
    before = contents(upstream.folder)

    notes = upstream.clone()

    assert notes == []
    assert contents(upstream.folder) == before


def test_a_clone_that_the_user_made_is_fetched_too(upstream: Upstream) -> None:
    upstream.root.parent.mkdir()
    subprocess.run(["git", "clone", "-q", upstream.path, upstream.root], check=True)
    upstream.commit()

    notes = upstream.clone()

    assert notes == []
    assert upstream.origin() == upstream.branches()


def test_a_partial_clone_is_not_fetched(upstream: Upstream) -> None:
    git(upstream.path, "config", "uploadpack.allowFilter", "true")
    upstream.root.parent.mkdir()
    url = upstream.terms.url
    subprocess.run(
        ["git", "clone", "-q", "--filter=blob:none", "--no-checkout", url, upstream.root],
        check=True,
    )
    before = contents(upstream.root)

    (note,) = upstream.clone()

    assert "partial clone" in note
    assert contents(upstream.root) == before


def test_what_is_not_ours_is_in_the_way_and_stays(upstream: Upstream) -> None:
    upstream.staging.mkdir(parents=True)
    (upstream.staging / "thesis.txt").write_text("years of work")

    with pytest.raises(WorkspaceError, match="is in the way") as caught:
        upstream.clone()

    assert not caught.value.can_pass
    assert (upstream.staging / "thesis.txt").read_text() == "years of work"


def test_a_remote_that_is_not_there_cannot_pass_and_leaves_nothing(upstream: Upstream) -> None:
    with pytest.raises(WorkspaceError) as caught:
        upstream.clone(url=f"file://{upstream.folder}/nowhere")

    assert not caught.value.can_pass
    assert list((upstream.folder / "work").iterdir()) == []
    assert list((upstream.state / "clones").iterdir()) == []


@pytest.mark.parametrize("url", ["ext::touch canary", "--upload-pack=touch canary", "fd::3"])
def test_addresses_that_run_programs_are_refused(
    upstream: Upstream, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(upstream.folder)

    with pytest.raises(WorkspaceError) as caught:
        upstream.clone(url=url)

    assert not caught.value.can_pass
    assert list(upstream.folder.rglob("canary")) == []


def test_two_jobs_that_clone_at_once_make_one_clone(upstream: Upstream) -> None:
    passed: list[str] = []
    start = threading.Barrier(4)

    def clone() -> list[str]:
        start.wait()
        return clone_or_fetch(upstream.tools(passed.append), upstream.terms, str(upstream.root))

    with ThreadPoolExecutor(4) as pool:
        results = [one.result() for one in [pool.submit(clone) for _ in range(4)]]

    assert results == [[]] * 4
    assert passed.count("clone.begun") == 1
    assert files_in(upstream.root) == files_in(upstream.path)
    assert not upstream.staging.exists()


def test_jobs_that_fetch_at_once_all_succeed(upstream: Upstream) -> None:
    upstream.clone()
    upstream.commit()

    with ThreadPoolExecutor(4) as pool:
        results = [one.result() for one in [pool.submit(upstream.clone) for _ in range(4)]]

    assert results == [[]] * 4
    assert upstream.origin() == upstream.branches()


def test_a_job_that_is_cancelled_stops_git_and_leaves_nothing(upstream: Upstream) -> None:
    git(upstream.folder, "clone", "--quiet", "--bare", "upstream", "served/x.git")

    async def cancel(
        files: LocalWorkspaceFiles, terms: CloneTerms, arrived: threading.Event
    ) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(files.clone, terms, str(upstream.root))
            await anyio.to_thread.run_sync(arrived.wait)
            group.cancel_scope.cancel()
        await until(lambda: not upstream.staging.exists())

    with serving(upstream.folder / "served") as server:
        server.gate.clear()
        terms = CloneTerms(url=server.url("x.git"))
        anyio.run(cancel, LocalWorkspaceFiles(upstream.state), terms, server.arrived)

    assert not upstream.root.exists()
