"""A landing killed anywhere is finished or undone by the next process: everything is as before, or as after it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nightherd.model.workspaces.workspace import Workspace
from nightherd.testing.fork_server import ForkServer
from soak import often
from workspaces.landing.landing_ground import (
    TEXT,
    Ground,
    commit,
    dump,
    first_line,
    git,
    last_line,
    make_repository,
    shown,
    write,
)
from workspaces.landing.landing_trials import FINISH, LAND

SECOND_KILLS = often(4, soak=1)
"""Of every so many points, one is killed in its turn while it is being finished."""

POINTS = {
    "landing.after_branch",
    "landing.after_file",
    "landing.after_index",
    "landing.after_objects",
    "landing.after_push",
    "landing.after_record",
    "landing.after_ref",
    "landing.after_removal",
    "landing.before_branch",
    "landing.before_file",
    "landing.before_index",
    "landing.before_push",
    "landing.before_record",
    "landing.before_ref",
    "landing.before_removal",
    "landing.index_locked",
    "landing.index_unlocked",
}
"""Where landings are killed: every point that they pass."""


def worked(ground: Ground) -> Workspace:
    """Work of all kinds: a directory becomes a file, files come and go."""
    workspace = ground.make()
    top = ground.directory(workspace)
    for path in ("b.txt", "dir/c.txt"):
        (top / path).unlink()
    (top / "dir").rmdir()
    write(top, {"a.txt": last_line(TEXT), "dir": "a file\n", "new/x.txt": "x\n"})
    return ground.snapshot(workspace)


def order(ground: Ground, **more: Any) -> dict[str, Any]:
    return {"folder": str(ground.folder), "project": str(ground.project), **more}


class Trials:
    """One landing, from the same beginning each time."""

    def __init__(self, ground: Ground, server: ForkServer, verb: str, **terms: Any) -> None:
        self._ground, self._server = ground, server
        self._workspace = msgspec.to_builtins(worked(ground))
        self._order = {"verb": verb, "terms": terms}
        self._copy = ground.folder.with_name(f"{ground.folder.name}-beginning")

    def prepare(self) -> None:
        """Remember the beginning: what was done to the ground before this is part of it."""
        shutil.copytree(self._ground.folder, self._copy, symlinks=True)

    def run(self, **more: Any) -> tuple[int, list[str]]:
        """Begin anew, and land."""
        shutil.rmtree(self._ground.folder)
        shutil.copytree(self._copy, self._ground.folder, symlinks=True)
        return self.land(**more)

    def land(self, **more: Any) -> tuple[int, list[str]]:
        """Land from where things are."""
        ended = self._server.run(
            LAND, order(self._ground, workspace=self._workspace, **self._order, **more)
        )
        assert ended.status in (0, -signal.SIGKILL), ended.error
        return ended.status, ended.said

    def finish(self, **more: Any) -> tuple[int, list[str]]:
        """Another process comes by."""
        ended = self._server.run(FINISH, order(self._ground, **more))
        assert ended.status in (0, -signal.SIGKILL), ended.error
        return ended.status, ended.said


def kill_everywhere(trials: Trials, look: Callable[[], object], ground: Ground) -> None:
    """Kill the landing at each of its points; what is there after finishing is what was there before or after."""
    trials.prepare()
    before = look()
    status, points = trials.run()
    after = look()
    assert status == 0
    assert before != after
    assert len(points) > 8, points
    assert set(points) <= POINTS
    seen = []
    for nth in range(1, len(points) + 1):
        status, _ = trials.run(nth=nth)
        assert status == -signal.SIGKILL
        if nth % SECOND_KILLS == 0:
            trials.finish(nth=1 + nth % 3)
        status, _ = trials.finish()
        assert status == 0
        found = look()
        assert found in (before, after), (nth, points[nth - 1])
        seen.append(found == after)
        assert ground.leftovers == []
        assert trials.finish() == (0, [])
    assert seen == sorted(seen), "from one point on it is done, and not before"
    assert True in seen
    assert False in seen


def test_apply_killed_anywhere(ground: Ground, fork_server: ForkServer) -> None:
    trials = Trials(ground, fork_server, "apply")
    write(ground.project, {"a.txt": first_line(TEXT), "mine.txt": "mine\n"})
    ground.git("add", "mine.txt")

    kill_everywhere(trials, lambda: dump(ground.project), ground)

    assert ground.read("a.txt") == first_line(last_line(TEXT))


def test_merge_into_the_branch_that_is_checked_out_killed_anywhere(
    ground: Ground, fork_server: ForkServer
) -> None:
    trials = Trials(ground, fork_server, "merge")
    write(ground.project, {"a.txt": first_line(TEXT)})
    commit(ground.project, "mine")
    write(ground.project, {"mine.txt": "mine\n"})
    ground.git("add", "mine.txt")

    kill_everywhere(trials, lambda: without_merge_date(ground), ground)

    assert git(ground.project, "status", "--porcelain") == "A  mine.txt"


def test_fast_forward_killed_anywhere(ground: Ground, fork_server: ForkServer) -> None:
    trials = Trials(ground, fork_server, "merge")

    kill_everywhere(trials, lambda: without_merge_date(ground), ground)


def test_merge_into_a_branch_that_is_not_checked_out_killed_anywhere(
    ground: Ground, fork_server: ForkServer
) -> None:
    trials = Trials(ground, fork_server, "merge")
    ground.git("checkout", "-q", "-b", "elsewhere")

    kill_everywhere(trials, lambda: without_merge_date(ground), ground)


@pytest.mark.parametrize("verb", ["apply", "merge"])
def test_landing_that_is_undone_killed_anywhere(
    ground: Ground, fork_server: ForkServer, verb: str
) -> None:
    """The disk is full at the third file; what was done by then is put back, and that is killed."""
    trials = Trials(ground, fork_server, verb)
    trials.prepare()
    before = without_merge_date(ground)
    trials.run()
    after = without_merge_date(ground)
    _, points = trials.run(full_at=3)
    assert without_merge_date(ground) == before
    assert points.count("landing.after_record") == 2
    seen = []
    for nth in range(1, len(points) + 1):
        assert trials.run(full_at=3, nth=nth)[0] == -signal.SIGKILL
        if nth % SECOND_KILLS == 0:
            trials.finish(nth=1 + nth % 3)
        assert trials.finish()[0] == 0
        found = without_merge_date(ground)
        assert found in (before, after), (nth, points[nth - 1])
        seen.append(found == after)
        assert ground.leftovers == []
    assert seen[-1] is False
    assert True in seen


def test_index_that_the_user_changed_after_the_kill_is_left_alone(
    ground: Ground, fork_server: ForkServer
) -> None:
    trials = Trials(ground, fork_server, "merge")
    trials.prepare()
    _, points = trials.run()
    trials.run(nth=points.index("landing.after_ref") + 1)
    (ground.project / ".git" / "index.lock").unlink()
    write(ground.project, {"mine.txt": "mine\n"})
    ground.git("add", "mine.txt")

    trials.finish()

    assert "mine.txt" in ground.git("ls-files")
    assert ground.read("a.txt") == last_line(TEXT)


def test_push_killed_anywhere(ground: Ground, fork_server: ForkServer) -> None:
    """The remote has the work or not; the local branch may lag behind it, and pushing again makes them agree."""
    remote = ground.folder / "remote.git"
    git(ground.folder, "init", "-q", "--bare", remote)
    ground.git("remote", "add", "origin", f"file://{remote}")
    trials = Trials(ground, fork_server, "push")
    trials.prepare()
    _, points = trials.run()
    after = (shown(ground.project), git(remote, "for-each-ref"))
    for nth in range(1, len(points) + 1):
        assert trials.run(nth=nth)[0] == -signal.SIGKILL
        trials.finish()
        assert sorted((ground.project / ".git").rglob("*.lock")) == []
        assert trials.land()[0] == 0
        assert (shown(ground.project), git(remote, "for-each-ref")) == after
        assert ground.leftovers == []


def without_merge_date(ground: Ground) -> object:
    """What the user sees, with trees in place of commits: a merge commit has the time it was made at."""
    seen = shown(ground.project)
    names = git(ground.project, "for-each-ref", "--format=%(refname)").splitlines()
    trees = {name: git(ground.project, "rev-parse", f"{name}^{{tree}}") for name in names}
    subjects = git(ground.project, "log", "--format=%s", "--all")
    workspace = ground.folder / "fleet" / ".nightherd-workspaces" / "job-1"
    return {
        **seen,
        "refs": trees,
        "log": subjects,
        "workspace": (git(workspace, "ls-files", "-s"), git(workspace, "status", "--porcelain")),
        "workspace locks": sorted(Path(ground.project, ".git", "worktrees").rglob("*.lock")),
    }


def test_file_that_the_user_changed_after_the_kill_is_left_alone(
    ground: Ground, fork_server: ForkServer
) -> None:
    trials = Trials(ground, fork_server, "apply")
    trials.prepare()
    _, points = trials.run()
    trials.run(nth=points.index("landing.after_record") + 1)
    write(ground.project, {"a.txt": "mine now\n"})

    status, said = trials.finish()

    assert status == 0
    assert said == [
        f"applying 5 files in {ground.project} had been interrupted and was finished; "
        "changed since and left alone: 'a.txt'"
    ]
    assert ground.read("a.txt") == "mine now\n"
    assert ground.read("dir") == "a file\n"


def test_lock_of_somebody_else_stays(ground: Ground, fork_server: ForkServer) -> None:
    trials = Trials(ground, fork_server, "merge")
    trials.prepare()
    _, points = trials.run()
    trials.run(nth=points.index("landing.index_locked") + 1)
    lock = ground.project / ".git" / "index.lock"
    assert lock.exists()
    lock.write_text("of somebody else")

    trials.finish()

    assert lock.read_text() == "of somebody else"


@pytest.mark.parametrize("damage", [b"", b"{", b'{"id": 1}', b"\xff\xfe"])
def test_record_that_cannot_be_read_is_reported_and_stays(ground: Ground, damage: bytes) -> None:
    folder = ground.state / "landing"
    folder.mkdir(parents=True)
    record = folder / "0123456789abcdef-abc.json"
    record.write_bytes(damage)

    (said,) = ground.finish()

    assert said.startswith(
        f"an interrupted landing cannot be finished, and its record stays: '{record}': it cannot be read"
    )
    assert record.read_bytes() == damage


def test_record_of_a_repository_that_is_gone_stays_and_stops_nobody(
    ground: Ground, fork_server: ForkServer, tmp_path: Path
) -> None:
    trials = Trials(ground, fork_server, "merge")
    trials.prepare()
    _, points = trials.run()
    trials.run(nth=points.index("landing.after_ref") + 1)
    gone = ground.folder / "gone"
    ground.project.rename(gone)
    other = replace(ground, project=make_repository(ground.folder / "other"))

    status, (said,) = trials.finish()
    other.merge(other.worked({"a.txt": "new\n"}, "job-2"))

    assert status == 0
    assert "cannot be finished, and its record stays" in said
    assert other.read("a.txt") == "new\n"
    gone.rename(ground.project)
    assert trials.finish()[1] == ["the merge into main had been interrupted and was finished"]
    assert git(ground.project, "status", "--porcelain") == ""
