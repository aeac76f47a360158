"""Worktrees: made on a branch of their own, from a base or a snapshot; the user's own things stay as they were."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import SetupCommand, WorkspaceMode
from nightherd.model.workspaces.snapshot import Snapshot
from nightherd.ports import Made
from workspaces.scene import (
    FIRST,
    Scene,
    beginning,
    commit,
    files_in,
    git,
    new_repository,
    noted,
    user_state,
    write,
)


def contents(files: dict[str, tuple[str, bytes]]) -> dict[str, str]:
    return {path: content.decode() for path, (_, content) in files.items()}


def test_worktree_has_the_files_of_its_base_on_a_branch_of_its_own(scene: Scene) -> None:
    before = user_state(scene.root)
    made = scene.make()
    top = scene.top()
    assert (made.directory, made.origin, made.branch) == (
        str(top),
        "base",
        "nightherd/herder/job-1",
    )
    assert contents(files_in(top)) == FIRST
    assert git(top, "status", "--porcelain=v2", "--branch").split("\n")[1:] == [
        "# branch.head nightherd/herder/job-1"
    ]
    assert made.base == "main"
    assert made.base_commit == git(scene.root, "rev-parse", "main") == made.snapshot.head
    assert made.base_tree == git(scene.root, "rev-parse", "main^{tree}") == made.snapshot.tree
    assert user_state(scene.root) == before
    assert git(scene.root, "status", "--porcelain") == ""


def test_workspaces_are_ignored_by_the_repository_around_them(scene: Scene) -> None:
    (scene.root / ".git" / "info" / "exclude").write_text(".nightherd/\n")
    scene.make()
    assert git(scene.root, "status", "--porcelain") == ""


def test_worktree_of_a_directory_below_the_top_is_worked_in_there(scene: Scene) -> None:
    made = scene.make(scene.row(root=str(scene.root / "src" / "lib")))
    assert made.prefix == "src/lib"
    assert made.directory == str(scene.top() / "src" / "lib")
    assert Path(made.directory, "cow.py").is_file()


def test_directory_that_the_base_does_not_have_is_made_empty(scene: Scene) -> None:
    (scene.root / "new" / "deep").mkdir(parents=True)
    made = scene.make(scene.row(root=str(scene.root / "new" / "deep")))
    assert Path(made.directory).is_dir()
    assert "'new/deep' is not in the repository" in made.notes[0]


def test_base_that_turns_the_directory_into_a_link_outwards_is_refused(
    scene: Scene, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    git(scene.root, "switch", "--quiet", "-c", "linked")
    (scene.root / "area").symlink_to(outside)
    git(scene.root, "add", "area")
    git(scene.root, "commit", "--quiet", "-m", "a link")
    git(scene.root, "switch", "--quiet", "main")
    (scene.root / "area" / "deep").mkdir(parents=True)
    scene.policy = replace(scene.policy, base="linked")
    with pytest.raises(WorkspaceError, match="leads out of the worktree"):
        scene.make(scene.row(root=str(scene.root / "area" / "deep")))
    assert list(outside.iterdir()) == []
    assert not scene.top().exists()


@pytest.mark.parametrize("base", ["other", "v1", "main~1", "refs/heads/other"])
def test_base_is_a_branch_tag_or_commit(scene: Scene, base: str) -> None:
    git(scene.root, "branch", "other")
    git(scene.root, "tag", "v1")
    first = git(scene.root, "rev-parse", "HEAD")
    commit(scene.root, {"README.md": "later\n"})
    scene.policy = replace(scene.policy, base=base)
    made = scene.make()
    assert (made.base, made.base_commit) == (base, first)
    assert contents(files_in(scene.top())) == FIRST


def test_base_that_only_the_remote_has_is_found(scene: Scene, tmp_path: Path) -> None:
    git(scene.root, "branch", "feature")
    git(tmp_path, "clone", "--quiet", str(scene.root), "clone")
    cloned = Scene(tmp_path / "clone", replace(scene.policy, base="feature"))
    assert cloned.make().base == "feature"


def test_detached_head_is_a_base_without_a_name(scene: Scene) -> None:
    head = git(scene.root, "rev-parse", "HEAD")
    git(scene.root, "switch", "--quiet", "--detach")
    made = scene.make()
    assert (made.base, made.base_commit) == (head, head)


def test_worktree_of_a_worktree_begins_at_what_that_has_checked_out(
    scene: Scene, tmp_path: Path
) -> None:
    git(scene.root, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    tip = commit(tmp_path / "side", {"side.txt": "here\n"})
    made = scene.make(scene.row(root=str(tmp_path / "side")))
    assert (made.base, made.base_commit) == ("side", tip)


def test_repository_with_sha256_objects(tmp_path: Path) -> None:
    scene = Scene(new_repository(tmp_path / "repo", FIRST, "--object-format=sha256"))
    made = scene.make()
    write(scene.top(), {"new.txt": "new\n"})
    snapshot = scene.snapshot()
    assert len(snapshot.tree) == 64
    assert scene.stored(made.store, snapshot.tree) == files_in(scene.top())


def test_shallow_clone_is_a_repository_like_any_other(scene: Scene, tmp_path: Path) -> None:
    commit(scene.root, {"README.md": "second\n"})
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{scene.root}", "shallow")
    shallow = Scene(tmp_path / "shallow")
    made = shallow.make()
    write(shallow.top(), {"README.md": "third\n"})
    snapshot = shallow.snapshot()
    assert shallow.stored(made.store, snapshot.tree) == files_in(shallow.top())


def test_line_endings_are_checked_out_as_attributes_say(tmp_path: Path) -> None:
    files = {
        ".gitattributes": "* text eol=crlf\n*.txt ident\n",
        "a.bat": "one\ntwo\n",
        "i.txt": "$Id$\n",
    }
    scene = Scene(new_repository(tmp_path / "repo", files))
    made = scene.make()
    assert (scene.top() / "a.bat").read_bytes() == b"one\r\ntwo\r\n"
    assert (scene.top() / "i.txt").read_bytes().startswith(b"$Id: ")
    assert git(scene.top(), "status", "--porcelain") == ""
    assert scene.snapshot(noted(scene.row(), made)).tree == made.base_tree


def test_files_that_a_filter_should_convert_are_mentioned_unless_setup_does_it(
    tmp_path: Path,
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    files = {".gitattributes": "*.bin filter=lfs -text\n", "a.bin": pointer}
    scene = Scene(new_repository(tmp_path / "repo", files))
    made = scene.make()
    assert [("git lfs pull" in note) for note in made.notes] == [True]
    assert (scene.top() / "a.bin").read_text() == pointer
    scene.policy = replace(scene.policy, setup=(SetupCommand(run="git lfs pull"),))
    assert scene.make(scene.row("job-2")).notes == ()


# What cannot be


def test_directory_outside_of_a_repository_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "plain")
    scene.root.mkdir()
    with pytest.raises(WorkspaceError, match="is not in a git repository") as caught:
        scene.make()
    assert "mode: copy" in str(caught.value.hint)
    assert not scene.top().exists()


def test_directory_that_is_missing_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    with pytest.raises(WorkspaceError, match="there is no directory"):
        scene.make(scene.row(root=str(tmp_path / "gone")))


def test_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    with pytest.raises(WorkspaceError, match="has no commit yet") as caught:
        Scene(tmp_path).make()
    assert "commit something" in str(caught.value.hint)


def test_bare_repository_is_refused(scene: Scene, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(scene.root), "bare.git")
    with pytest.raises(WorkspaceError, match="bare repository") as caught:
        scene.make(scene.row(root=str(tmp_path / "bare.git")))
    assert "clone it" in str(caught.value.hint)


def test_base_that_is_not_there_is_refused_with_the_branches_that_are(scene: Scene) -> None:
    git(scene.root, "branch", "release")
    scene.policy = replace(scene.policy, base="relaese")
    with pytest.raises(WorkspaceError, match="base 'relaese' is no branch") as caught:
        scene.make()
    assert "main" in str(caught.value.hint)
    assert "release" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["nightherd", "nightherd/herder"])
def test_branch_in_the_way_of_ours_is_refused_by_name(scene: Scene, name: str) -> None:
    git(scene.root, "branch", name)
    with pytest.raises(WorkspaceError, match=f"there is a branch '{name}'") as caught:
        scene.make()
    assert f"git branch -m {name} {name}-old" in str(caught.value.hint)


def test_partial_clone_that_lacks_files_is_refused_and_fetches_nothing(
    scene: Scene, tmp_path: Path
) -> None:
    git(scene.root, "config", "uploadpack.allowFilter", "true")
    url = f"file://{scene.root}"
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", "--no-checkout", url, "partial")
    partial = Scene(tmp_path / "partial")
    canary = tmp_path / "canary"
    git(partial.root, "config", "remote.origin.uploadpack", f"touch {canary}; git-upload-pack")
    with pytest.raises(WorkspaceError) as caught:
        partial.make()
    assert "partial clone" in str(caught.value.hint)
    assert not canary.exists()
    assert not partial.top().exists()
    assert git(partial.root, "branch", "--list", "nightherd/*") == ""


def test_failed_making_leaves_nothing_in_the_repository(scene: Scene) -> None:
    before = user_state(scene.root)
    blob = git(scene.root, "rev-parse", "HEAD:README.md")
    (scene.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(WorkspaceError, match="cannot be written"):
        scene.make()
    assert user_state(scene.root) == before
    assert git(scene.root, "for-each-ref", "refs/nightherd", "refs/heads/nightherd") == ""
    assert list((scene.root / ".git").glob("worktrees/*")) == []
    assert not scene.top().exists()


# From a snapshot


def changed_workspace(scene: Scene) -> tuple[Made, Snapshot]:
    made = scene.make()
    top = scene.top()
    write(top, {"src/app.py": "print('baa')\n", "new/file.txt": "new\n", ".env.d/x": b"\xff\x00"})
    (top / "README.md").unlink()
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("src/app.py")
    return made, scene.snapshot(noted(scene.row(), made))


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


# Again


def test_workspace_that_is_whole_is_kept_as_it_is(scene: Scene) -> None:
    made = scene.make()
    write(scene.top(), {"work.txt": "work\n"})
    kept = scene.make(noted(scene.row(), made))
    assert (kept.origin, kept.snapshot.changed) == ("kept", 1)
    assert (scene.top() / "work.txt").read_text() == "work\n"
    assert kept.base_commit == made.base_commit


def test_row_that_was_not_written_after_making_learns_where_it_began(scene: Scene) -> None:
    made = scene.make()
    commit(scene.root, {"README.md": "the base moves on\n"})
    again = scene.make()
    assert (again.origin, again.base_commit, again.base_tree) == (
        "base", made.base_commit, made.base_tree,
    )  # fmt: skip


def test_directory_that_vanished_is_made_again_from_the_snapshot(scene: Scene) -> None:
    made, snapshot = changed_workspace(scene)
    tip = git(scene.top(), "rev-parse", "HEAD")
    at_snapshot = files_in(scene.top())
    shutil.rmtree(scene.top())
    row = noted(scene.row(), made)
    assert not scene.files.is_whole(row)
    again = scene.make(row, beginning(made, snapshot))
    assert again.origin == "snapshot"
    assert files_in(scene.top()) == at_snapshot
    assert git(scene.top(), "rev-parse", "HEAD") == tip
    assert git(scene.root, "worktree", "list", "--porcelain").count("nightherd-workspaces") == 1


def test_directory_that_vanished_with_commits_on_its_branch_has_them_again(scene: Scene) -> None:
    made = scene.make()
    tip = commit(scene.top(), {"done.txt": "done\n"})
    shutil.rmtree(scene.top())
    again = scene.make(noted(scene.row(), made))
    assert again.snapshot.head == tip
    assert (scene.top() / "done.txt").is_file()
    assert again.base_commit == made.base_commit


def test_lost_record_of_a_directory_costs_no_work(scene: Scene) -> None:
    made, snapshot = changed_workspace(scene)
    shutil.rmtree(scene.state / "workspaces")
    row = replace(noted(scene.row(), made), tree=snapshot.tree)
    again = scene.make(row)
    assert (again.origin, again.snapshot.tree) == ("kept", snapshot.tree)
    assert (scene.top() / "new" / "file.txt").is_file()


def test_moved_state_directory_and_repository_are_repaired(scene: Scene, tmp_path: Path) -> None:
    made = scene.make()
    commit(scene.top(), {"done.txt": "done\n"})
    write(scene.top(), {"half.txt": "half\n"})
    moved = Scene(scene.root.rename(tmp_path / "moved"))
    row = replace(noted(scene.row(), made), root=str(moved.root))
    kept = moved.make(row)
    assert kept.origin == "kept"
    assert git(moved.top(), "status", "--porcelain") == "?? half.txt"
    assert git(moved.root, "worktree", "list", "--porcelain").count(str(moved.top())) == 1
    assert moved.stored(made.store, kept.snapshot.tree) == files_in(moved.top())


def test_repository_that_moved_while_a_job_worked_is_found_by_the_snapshot(
    scene: Scene, tmp_path: Path
) -> None:
    state = Scene(tmp_path / "fleet")
    state.root.mkdir()
    made = state.make(state.row(root=str(scene.root)))
    scene.root.rename(tmp_path / "elsewhere")
    write(state.top(), {"half.txt": "half\n"})
    row = replace(noted(state.row(), made), root=str(tmp_path / "elsewhere"))
    snapshot = state.snapshot(row)
    assert state.stored(made.store, snapshot.tree) == files_in(state.top())
    assert git(state.top(), "status", "--porcelain") == "?? half.txt"


def test_copied_state_directory_is_refused(scene: Scene, tmp_path: Path) -> None:
    made = scene.make()
    copy = Scene(tmp_path / "copy")
    copy.root.mkdir()
    for name in (".nightherd", ".nightherd-workspaces"):
        shutil.copytree(scene.root / name, copy.root / name, symlinks=True)
    row = noted(scene.row(), made)
    with pytest.raises(WorkspaceError, match="is a copy") as caught:
        copy.make(row)
    assert str(scene.top()) in str(caught.value)
    copy.remove(row)
    assert not copy.top().exists()
    assert git(scene.top(), "status", "--porcelain") == ""


def test_replaced_git_file_is_repaired_and_what_stood_there_is_kept(scene: Scene) -> None:
    made = scene.make()
    (scene.top() / ".git").unlink()
    git(scene.top(), "init", "--quiet")
    scene.make(noted(scene.row(), made))
    assert git(scene.top(), "rev-parse", "--abbrev-ref", "HEAD") == made.branch
    assert (scene.top() / ".git.replaced-1" / "HEAD").is_file()


def test_registration_that_was_deleted_is_made_again_around_the_files(scene: Scene) -> None:
    made = scene.make()
    tip = commit(scene.top(), {"done.txt": "done\n"})
    write(scene.top(), {"half.txt": "half\n"})
    git(scene.root, "worktree", "unlock", str(scene.top()))
    shutil.rmtree(scene.root / ".git" / "worktrees")
    kept = scene.make(noted(scene.row(), made))
    assert (kept.origin, kept.snapshot.head) == ("kept", tip)
    assert git(scene.top(), "status", "--porcelain") == "?? half.txt"
    assert not (scene.top().parent / ".repairing" / "job-1").exists()


@pytest.mark.parametrize(
    "command", [["worktree", "prune", "--expire=now"], ["gc", "--prune=now", "--quiet"]]
)
@pytest.mark.parametrize("is_away", [False, True])
def test_cleaning_of_the_repository_does_not_harm_a_workspace(
    scene: Scene, command: list[str], is_away: bool
) -> None:
    made, snapshot = changed_workspace(scene)
    at_snapshot = files_in(scene.top())
    if is_away:
        scene.top().rename(scene.root / "away")
    git(scene.root, *command)
    if is_away:
        (scene.root / "away").rename(scene.top())
    kept = scene.make(noted(scene.row(), made))
    assert (kept.origin, kept.snapshot.tree) == ("kept", snapshot.tree)
    assert files_in(scene.top()) == at_snapshot
    assert scene.stored(kept.store, kept.snapshot.tree) == at_snapshot


def test_two_workspaces_of_one_repository_share_a_store(scene: Scene) -> None:
    first, second = scene.make(), scene.make(scene.row("job-2"))
    assert first.store == second.store
    write(scene.top(), {"only-here.txt": "1\n"})
    assert scene.snapshot(noted(scene.row(), first)).changed == 1
    assert scene.snapshot(noted(scene.row("job-2"), second)).changed == 0


def test_measure_counts_what_is_on_disk_and_follows_no_link(scene: Scene, tmp_path: Path) -> None:
    scene.make()
    small = scene.files.measure(scene.row())
    write(tmp_path, {"large": b"x" * 1_000_000})
    (scene.top() / "link").symlink_to(tmp_path / "large")
    (scene.top() / "sparse").touch()
    with (scene.top() / "sparse").open("r+b") as file:
        file.truncate(10_000_000)
    assert scene.files.measure(scene.row()) - small < 100_000
    write(scene.top(), {"large": b"x" * 1_000_000})
    assert scene.files.measure(scene.row()) - small >= 1_000_000


def test_mode_of_the_row_decides_not_that_of_the_policy(scene: Scene) -> None:
    made = scene.make(scene.row(mode=WorkspaceMode.EMPTY))
    assert made.origin == "empty"
