"""Worktrees: made on a branch of their own, from a base or a snapshot; the user's own things stay as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import SetupCommand
from workspaces.scene import (
    FIRST,
    Scene,
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
