"""Repositories inside workspaces for containers: git works there with borrowed objects, and nothing there runs on the host."""

from __future__ import annotations

import os
import shutil
import zlib
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import Standing
from nightherd.workspaces.git import Git
from nightherd.workspaces.survey import LocalSurvey
from workspaces.scene import (
    FIRST,
    Scene,
    beginning,
    changed_workspace,
    commit,
    files_in,
    git,
    new_repository,
    noted,
    user_state,
    write,
)

CLONE = WorkspacePolicy(mode=WorkspaceMode.CLONE)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(new_repository(tmp_path / "repo"), CLONE)


def made_row(scene: Scene) -> Workspace:
    return noted(scene.row(), scene.make())


def test_repository_of_its_own_is_on_the_branch_and_borrows_objects(scene: Scene) -> None:
    before = user_state(scene.root)
    git(scene.root, "tag", "v1")
    made = scene.make()
    top = scene.top()
    assert made.branch == "nightherd/herder/job-1"
    assert made.borrowed == (str(scene.root / ".git" / "objects"),)
    assert files_in(top) == {name: ("file", text.encode()) for name, text in FIRST.items()}
    assert (top / ".git").is_dir()
    assert git(top, "status", "--porcelain=v2", "--branch").split("\n")[1:] == [
        f"# branch.head {made.branch}"
    ]
    assert git(top, "rev-parse", "HEAD", "main", "v1").split() == [made.base_commit] * 3
    assert git(top, "count-objects") == "0 objects, 0 kilobytes"
    assert git(top, "fsck") == ""
    assert git(scene.root, "rev-parse", made.branch) == made.base_commit
    git(scene.root, "tag", "-d", "v1")
    assert user_state(scene.root) == before
    assert git(scene.root, "worktree", "list").count("\n") == 0


def test_commits_come_to_the_users_repository_with_the_next_snapshot(scene: Scene) -> None:
    row = made_row(scene)
    before = user_state(scene.root)
    first = commit(scene.top(), {"a.txt": "a\n"})
    assert scene.snapshot(row).head == first == git(scene.root, "rev-parse", str(row.branch))
    second = commit(scene.top(), {"deep/b.txt": "b\n"})
    git(scene.top(), "gc", "--quiet")
    snapshot = scene.snapshot(row)
    assert snapshot.head == second == git(scene.root, "rev-parse", str(row.branch))
    assert git(scene.root, "rev-parse", "refs/nightherd/job-1/head") == second
    assert git(scene.root, "show", f"{second}:deep/b.txt") == "b"
    assert user_state(scene.root) == before
    shutil.rmtree(scene.top())
    assert git(scene.root, "fsck") == ""


def test_amended_commit_moves_the_branch_and_a_branch_of_the_user_stays(scene: Scene) -> None:
    row = made_row(scene)
    commit(scene.top(), {"a.txt": "a\n"})
    scene.snapshot(row)
    git(scene.top(), "commit", "--quiet", "--amend", "-m", "other")
    amended = git(scene.top(), "rev-parse", "HEAD")
    scene.snapshot(row)
    assert git(scene.root, "rev-parse", str(row.branch)) == amended
    # The user checks it out, or commits on it: then it is left alone, and nothing is lost.
    git(scene.root, "switch", "--quiet", str(row.branch))
    own = commit(scene.root, {"mine.txt": "mine\n"})
    later = commit(scene.top(), {"b.txt": "b\n"})
    assert scene.snapshot(row).head == later
    assert git(scene.root, "rev-parse", str(row.branch)) == own
    git(scene.root, "switch", "--quiet", "main")
    later = commit(scene.top(), {"c.txt": "c\n"})
    assert scene.snapshot(row).head == later
    assert git(scene.root, "rev-parse", str(row.branch)) == own
    assert git(scene.root, "rev-parse", "refs/nightherd/job-1/head") == later


def test_detached_head_is_kept_and_the_branch_stays(scene: Scene) -> None:
    row = made_row(scene)
    git(scene.top(), "switch", "--quiet", "--detach")
    head = commit(scene.top(), {"a.txt": "a\n"})
    assert scene.snapshot(row).head == head
    assert git(scene.root, "rev-parse", str(row.branch)) == row.base_commit
    git(scene.top(), "switch", "--quiet", "-c", "x")
    head = commit(scene.top(), {"b.txt": "b\n"})
    git(scene.top(), "pack-refs", "--all")
    assert scene.snapshot(row).head == head
    assert git(scene.root, "cat-file", "-t", head) == "commit"


def test_fork_begins_with_the_files_and_the_commit_of_a_snapshot(scene: Scene) -> None:
    row = made_row(scene)
    head = commit(scene.top(), {"a.txt": "a\n"})
    write(scene.top(), {"open.txt": "not committed\n"})
    snapshot = scene.snapshot(row)
    made = scene.make(scene.row("job-2"), beginning(scene.make(row), snapshot))
    assert files_in(scene.top("job-2")) == files_in(scene.top())
    assert git(scene.top("job-2"), "rev-parse", "HEAD") == head
    assert git(scene.top("job-2"), "status", "--porcelain") == "?? open.txt"
    assert made.branch == "nightherd/herder/job-2"


def test_snapshots_are_those_of_a_worktree(scene: Scene) -> None:
    made, snapshot = changed_workspace(scene)
    assert scene.stored(made.store, snapshot.tree) == files_in(scene.top())


def test_lost_directory_is_made_again_with_its_commits(scene: Scene) -> None:
    row = made_row(scene)
    head = commit(scene.top(), {"a.txt": "a\n"})
    snapshot = scene.snapshot(row)
    shutil.rmtree(scene.top())
    made = scene.make(row, beginning(scene.make(row), snapshot))
    assert git(scene.top(), "rev-parse", "HEAD") == head
    assert files_in(scene.top())["a.txt"] == ("file", b"a\n")
    assert made.base_commit == row.base_commit


@pytest.mark.parametrize("what", ["missing", "link", "file"])
def test_repository_that_the_agent_destroyed_is_made_again_and_what_is_there_is_kept(
    scene: Scene, tmp_path: Path, what: str
) -> None:
    row = made_row(scene)
    head = commit(scene.top(), {"a.txt": "a\n"})
    scene.snapshot(row)
    dot_git = scene.top() / ".git"
    outside = tmp_path / "outside"
    dot_git.rename(outside)
    if what == "link":
        dot_git.symlink_to(outside)
    elif what == "file":
        dot_git.write_text(f"gitdir: {outside}\n")
    before = files_in(outside, without=())
    survey = LocalSurvey(scene.state, Git())
    assert survey.standing(row) is Standing.BROKEN
    assert scene.make(row).origin == "kept"
    assert survey.standing(row) is Standing.WHOLE
    assert dot_git.is_dir()
    assert not dot_git.is_symlink()
    assert git(scene.top(), "rev-parse", "HEAD") == head
    assert git(scene.top(), "status", "--porcelain", "--", ":!.git.replaced*") == ""
    assert files_in(outside, without=()) == before


def test_repository_that_was_moved_is_borrowed_from_at_its_new_place(
    scene: Scene, tmp_path: Path
) -> None:
    row = made_row(scene)
    moved = tmp_path / "moved"
    scene.root.rename(moved)
    there = Scene(moved, CLONE)
    made = there.make(replace(row, root=str(moved)))
    assert made.borrowed == (str(moved / ".git" / "objects"),)
    assert git(there.top(), "log", "--format=%s") == "first"


def test_landed_commit_is_followed_when_the_next_job_begins(scene: Scene) -> None:
    row = made_row(scene)
    write(scene.top(), {"a.txt": "a\n"})
    scene.snapshot(row)
    # As a merge does: the work becomes a commit on the branch in the user's repository.
    git(scene.root, "worktree", "add", "--quiet", str(scene.root.parent / "side"), str(row.branch))
    landed = commit(scene.root.parent / "side", {"a.txt": "a\n"})
    git(scene.root, "worktree", "remove", "--force", str(scene.root.parent / "side"))
    scene.make(row)
    assert git(scene.top(), "rev-parse", "HEAD") == landed
    assert git(scene.top(), "status", "--porcelain") == ""


def test_removing_keeps_commits_that_no_snapshot_has_seen(scene: Scene) -> None:
    row = made_row(scene)
    head = commit(scene.top(), {"a.txt": "a\n"})
    scene.remove(row)
    assert not scene.top().exists()
    assert git(scene.root, "rev-parse", str(row.branch)) == head
    assert git(scene.root, "fsck") == ""


def test_removing_deletes_a_branch_without_work(scene: Scene) -> None:
    row = made_row(scene)
    scene.remove(row)
    assert git(scene.root, "branch", "--list", "nightherd/*") == ""


def test_shallow_clone_and_sha256(tmp_path: Path, scene: Scene) -> None:
    commit(scene.root, {"README.md": "second\n"})
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{scene.root}", "shallow")
    other = new_repository(tmp_path / "sha256", FIRST, "--object-format=sha256")
    for root in (tmp_path / "shallow", other):
        ground = Scene(root, CLONE)
        row = noted(ground.row(), ground.make())
        assert git(ground.top(), "fsck") == ""
        head = commit(ground.top(), {"a.txt": "a\n"})
        assert ground.snapshot(row).head == head == git(root, "rev-parse", str(row.branch))
        assert git(root, "fsck", "--no-dangling") == ""


def test_objects_that_the_users_repository_borrows_itself_are_named(
    scene: Scene, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "--quiet", "--shared", str(scene.root), "shared")
    ground = Scene(tmp_path / "shared", CLONE)
    assert ground.make().borrowed == (
        str(tmp_path / "shared" / ".git" / "objects"),
        str(scene.root / ".git" / "objects"),
    )


def test_configuration_has_the_user_and_an_address_without_credentials(scene: Scene) -> None:
    git(scene.root, "config", "user.name", 'A "quoted" \\ name')
    git(scene.root, "config", "user.email", "a@example.com")
    git(scene.root, "config", "core.fsmonitor", "touch /tmp/never")
    git(scene.root, "config", "filter.x.clean", "touch /tmp/never")
    git(scene.root, "remote", "add", "origin", "https://me:secret@example.com/x.git")
    scene.make()
    config = (scene.top() / ".git" / "config").read_text()
    assert git(scene.top(), "config", "user.name") == 'A "quoted" \\ name'
    assert git(scene.top(), "config", "remote.origin.url") == "https://example.com/x.git"
    assert "secret" not in config
    assert "never" not in config
    assert list((scene.top() / ".git" / "hooks").iterdir()) == []


# An agent that attacks


def test_nothing_that_the_agent_writes_there_runs_on_the_host(scene: Scene, tmp_path: Path) -> None:
    row = made_row(scene)
    ran = tmp_path / "ran"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho ran >> {ran}\ncat\n")
    evil.chmod(0o755)
    head = commit(scene.top(), {"a.txt": "a\n", ".gitattributes": "* filter=evil diff=evil\n"})
    dot_git = scene.top() / ".git"
    for key in ("core.fsmonitor", "core.sshCommand", "filter.evil.clean", "filter.evil.smudge",
                "diff.evil.textconv", "diff.evil.command", "diff.external", "core.pager",
                "uploadpack.packObjectsHook", "core.alternateRefsCommand", "gpg.program"):  # fmt: skip
        git(dot_git, "config", "--file", "config", key, str(evil))
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        shutil.copy(evil, dot_git / "hooks" / hook)
    write(scene.top(), {"b.txt": "b\n"})
    snapshot = scene.snapshot(row)
    assert snapshot.head == head
    scene.make(row)
    scene.reader.patch(str(row.store), str(row.base_tree), snapshot.tree)
    scene.make(scene.row("job-2"), beginning(scene.make(row), snapshot))
    scene.remove(row)
    assert not ran.exists()


def loose(repository: Path, name: str) -> Path:
    return repository / "objects" / name[:2] / name[2:]


def overwrite(path: Path, content: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def test_object_that_is_not_what_it_is_called_does_not_come_home(scene: Scene) -> None:
    row = made_row(scene)
    head = commit(scene.top(), {"a.txt": "a\n"})
    blob = git(scene.top(), "rev-parse", "HEAD:a.txt")
    overwrite(loose(scene.top() / ".git", blob), zlib.compress(b"blob 5\0evil\n"))
    snapshot = scene.snapshot(row)
    assert snapshot.head == row.base_commit
    assert scene.stored(str(row.store), snapshot.tree) == files_in(scene.top())
    assert git(scene.root, "rev-parse", str(row.branch)) == row.base_commit
    assert git(scene.root, "fsck") == ""
    scene.remove(row)
    assert not scene.top().exists()
    assert not (scene.root / ".git" / "objects" / head[:2] / head[2:]).exists()


def test_missing_object_keeps_a_commit_from_coming_home(scene: Scene) -> None:
    row = made_row(scene)
    commit(scene.top(), {"a.txt": "a\n"})
    loose(scene.top() / ".git", git(scene.top(), "rev-parse", "HEAD:a.txt")).unlink()
    assert scene.snapshot(row).head == row.base_commit
    assert git(scene.root, "fsck") == ""


def test_alternates_that_the_agent_adds_are_not_read_on_the_host(
    scene: Scene, tmp_path: Path
) -> None:
    secret = new_repository(tmp_path / "secret", {"key.txt": "secret\n"})
    row = made_row(scene)
    alternates = scene.top() / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{alternates.read_text()}{secret / '.git' / 'objects'}\n")
    git(scene.top(), "reset", "--quiet", "--soft", git(secret, "rev-parse", "HEAD"))
    assert scene.snapshot(row).head == row.base_commit
    made = scene.make(row)
    assert made.borrowed == (str(scene.root / ".git" / "objects"),)
    assert str(secret) not in alternates.read_text()


@pytest.mark.parametrize("name", ["HEAD", "objects", "refs", "packed-refs", "objects/pack"])
@pytest.mark.parametrize("kind", ["link", "pipe", "huge"])
def test_links_pipes_and_endless_files_do_no_harm(
    scene: Scene, tmp_path: Path, name: str, kind: str
) -> None:
    row = made_row(scene)
    commit(scene.top(), {"a.txt": "a\n"})
    path, aside = scene.top() / ".git" / name, tmp_path / "aside"
    if path.exists():
        path.rename(aside)
    match kind:
        case "link":
            aside.touch() if not aside.exists() else None
            path.symlink_to(aside)
        case "pipe":
            os.mkfifo(path)
        case _:
            with path.open("wb") as file:
                file.truncate(100 * 1024**3)
    snapshot = scene.snapshot(row)
    assert files_in(scene.top()) == scene.stored(str(row.store), snapshot.tree)
    outside = files_in(aside, without=()) if aside.is_dir() else None
    anyio.run(scene.files.make, row, CLONE)
    assert outside is None or files_in(aside, without=()) == outside
    scene.remove(row)
    assert git(scene.root, "fsck", "--no-dangling") == ""
