"""SIGKILL while a repository is cloned or fetched: nothing half made is taken for whole, and the next job goes on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightherd.testing.fork_server import ForkServer
from workspaces.git_server import serving
from workspaces.scene import files_in, git
from workspaces.upstream import Upstream, new_upstream, terms_of

CLONE = "workspaces.clone_trials:clone"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as server:
        server.load("workspaces.clone_trials")
        yield server


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return new_upstream(tmp_path)


def order(upstream: Upstream, point: str | None = None) -> dict[str, str | None]:
    return {"folder": str(upstream.folder), "url": upstream.terms.url, "point": point}


def check_is_whole(upstream: Upstream) -> None:
    assert files_in(upstream.root) == files_in(upstream.path)
    assert upstream.origin() == upstream.branches()
    assert git(upstream.root, "status", "--porcelain") == ""
    git(upstream.root, "fsck", "--strict")
    assert [path.name for path in upstream.root.parent.iterdir()] == ["clone"]
    assert list((upstream.state / "clones").iterdir()) == []


@pytest.mark.parametrize("point", ["clone.begun", "clone.fetched", "clone.filled", "clone.made"])
def test_a_clone_that_was_killed_is_made_again(
    server: ForkServer, upstream: Upstream, point: str
) -> None:
    ended = server.run(CLONE, order(upstream, point))

    assert ended.status == -signal.SIGKILL
    assert not upstream.root.exists()
    assert upstream.staging.exists()
    assert upstream.clone() == []
    check_is_whole(upstream)


def test_a_clone_that_was_killed_after_its_end_is_whole(
    server: ForkServer, upstream: Upstream
) -> None:
    ended = server.run(CLONE, order(upstream, "clone.renamed"))

    assert ended.status == -signal.SIGKILL
    check_is_whole(upstream)


def test_a_clone_that_was_killed_many_times_is_made_in_the_end(
    server: ForkServer, upstream: Upstream
) -> None:
    for point in ("clone.made", "clone.begun", "clone.fetched", "clone.begun", "clone.filled"):
        assert server.run(CLONE, order(upstream, point)).status == -signal.SIGKILL

    assert server.run(CLONE, order(upstream)).status == 0
    check_is_whole(upstream)


@pytest.mark.parametrize("point", ["fetch.fetched", "fetch.bounded", "fetch.pruned"])
def test_a_fetch_that_was_killed_is_made_again(
    server: ForkServer, upstream: Upstream, point: str
) -> None:
    upstream.clone(depth=1)
    git(upstream.path, "checkout", "--quiet", "--orphan", "other")
    upstream.commit()
    git(upstream.path, "branch", "-D", "side")

    ended = server.run(CLONE, order(upstream, point))

    assert ended.status == -signal.SIGKILL
    git(upstream.root, "fsck", "--strict")
    assert upstream.clone() == []
    assert upstream.origin() == upstream.branches()
    git(upstream.root, "fsck", "--strict")
    left = [path.name for path in (upstream.root / ".git").iterdir()]
    assert not [name for name in left if name.endswith(".lock") or name == "nightherd-shallow"]


def test_the_lock_of_a_killed_fetch_is_known_and_removed(
    server: ForkServer, upstream: Upstream
) -> None:
    upstream.clone(depth=1)
    unshallow = {**order(upstream, "fetch.locked"), "depth": 0}

    ended = server.run(CLONE, unshallow)

    assert ended.status == -signal.SIGKILL
    assert (upstream.root / ".git/shallow.lock").exists()
    assert upstream.clone(depth=0) == []
    assert not (upstream.root / ".git/shallow.lock").exists()
    assert git(upstream.root, "rev-list", "--count", "HEAD") == "3"


def test_the_lock_of_another_git_command_is_left_to_it(upstream: Upstream) -> None:
    upstream.clone(depth=1)
    lock = upstream.root / ".git/shallow.lock"
    lock.write_text("")

    (note,) = upstream.clone(depth=0)

    assert "shallow.lock" in note
    assert lock.exists()
    assert git(upstream.root, "rev-list", "--count", "HEAD") == "1"


def test_a_git_command_that_outlives_its_process_keeps_the_lock(
    server: ForkServer, upstream: Upstream
) -> None:
    git(upstream.folder, "clone", "--quiet", "--bare", "upstream", "served/x.git")
    with serving(upstream.folder / "served") as remote:
        upstream.terms = terms_of(remote.url("x.git"))
        remote.gate.clear()
        (trial,) = server.begin(CLONE, order(upstream))
        assert remote.arrived.wait(60)
        trial.send(signal.SIGKILL)
        assert trial.wait().status == -signal.SIGKILL
        remote.gate.set()

        assert upstream.clone() == []

    check_is_whole(upstream)
