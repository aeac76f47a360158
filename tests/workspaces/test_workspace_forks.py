"""Forks: a worktree with the files of a snapshot, exactly, and nothing written outside of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec.structs import replace

from workspaces.scene import (
    Scene,
    beginning,
    changed_workspace,
    commit,
    files_in,
    git,
    new_repository,
    noted,
    write,
)


def test_fork_has_the_files_of_the_snapshot_as_uncommitted_changes(scene: Scene) -> None:
    made, snapshot = changed_workspace(scene)
    at_snapshot = files_in(scene.top())
    write(scene.top(), {"src/app.py": "print('later')\n"})
    forked = scene.make(scene.row("job-2"), beginning(made, snapshot))
    assert forked.origin == "snapshot"
    assert files_in(scene.top("job-2")) == at_snapshot
    assert (forked.base, forked.base_commit, forked.base_tree) == (
        made.base, made.base_commit, made.base_tree,
    )  # fmt: skip
    status = git(scene.top("job-2"), "status", "--porcelain", "--untracked-files=all").split("\n")
    assert sorted(status) == [
        " D README.md", " M src/app.py", "?? .env.d/x", "?? link", "?? new/file.txt", "?? run.sh",
    ]  # fmt: skip
    again = scene.snapshot(noted(scene.row("job-2"), forked))
    assert (again.tree, again.changed) == (snapshot.tree, 0)


def test_fork_begins_at_the_commits_the_agent_had_made(scene: Scene) -> None:
    made = scene.make()
    tip = commit(scene.top(), {"done.txt": "done\n"}, "by the agent")
    write(scene.top(), {"half.txt": "half\n"})
    snapshot = scene.snapshot(noted(scene.row(), made))
    assert snapshot.head == tip
    commit(scene.top(), {"half.txt": "whole\n"}, "later")
    scene.make(scene.row("job-2"), beginning(made, snapshot))
    fork = scene.top("job-2")
    assert git(fork, "rev-parse", "HEAD") == tip
    assert git(fork, "status", "--porcelain") == "?? half.txt"
    assert (fork / "half.txt").read_text() == "half\n"


def test_fork_whose_commit_is_gone_begins_at_the_base(scene: Scene) -> None:
    made, snapshot = changed_workspace(scene)
    gone = replace(beginning(made, snapshot), head="1" * 40)
    scene.make(scene.row("job-2"), gone)
    assert git(scene.top("job-2"), "rev-parse", "HEAD") == made.base_commit
    assert files_in(scene.top("job-2")) == files_in(scene.top())


def test_fork_keeps_line_endings_byte_for_byte(tmp_path: Path) -> None:
    files = {".gitattributes": "* text eol=crlf\n", "a.bat": "a\n", "b.bat": "b\n"}
    scene = Scene(new_repository(tmp_path / "repo", files))
    made = scene.make()
    write(scene.top(), {"b.bat": b"mixed\r\nlines\n", "new.bat": b"lf\n"})
    snapshot = scene.snapshot(noted(scene.row(), made))
    scene.make(scene.row("job-2"), beginning(made, snapshot))
    assert files_in(scene.top("job-2")) == files_in(scene.top())
    assert (scene.top("job-2") / "a.bat").read_bytes() == b"a\r\n"


def test_snapshot_that_replaces_a_directory_by_a_link_never_writes_through_it(
    scene: Scene, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    write(outside, {"cow.py": "untouched\n"})
    made = scene.make()
    shutil.rmtree(scene.top() / "src" / "lib")
    (scene.top() / "src" / "lib").symlink_to(outside)
    linked = scene.snapshot(noted(scene.row(), made))
    scene.make(scene.row("job-2"), beginning(made, linked))
    assert (scene.top("job-2") / "src" / "lib").is_symlink()
    # And back: a fork that begins at a commit with the link, with files below it in the snapshot.
    git(scene.top(), "add", "--all")
    git(scene.top(), "commit", "--quiet", "-m", "link")
    with_link = scene.snapshot(noted(scene.row(), made))
    (scene.top() / "src" / "lib").unlink()
    write(scene.top(), {"src/lib/cow.py": "inside\n"})
    inside = scene.snapshot(noted(scene.row(), made))
    assert inside.head == with_link.head
    scene.make(scene.row("job-3"), beginning(made, inside))
    assert (scene.top("job-3") / "src" / "lib" / "cow.py").read_text() == "inside\n"
    assert files_in(outside) == {"cow.py": ("file", b"untouched\n")}
