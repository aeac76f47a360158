"""Merging into the branches of a repository of any kind: which is chosen, and where it is checked out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as changed

from nightherd.errors import RefusedError, WorkspaceError
from workspaces.landing.landing_ground import (
    TEXT,
    Ground,
    commit,
    dump,
    first_line,
    git,
    last_line,
    lay,
    make_repository,
    shown,
    status,
    subjects,
    write,
)

WORK: dict[str, str | bytes | None] = {
    "a.txt": last_line(TEXT),
    "new/x.txt": "x\n",
    "dir/c.txt": None,
}


def test_branch_that_is_not_checked_out_moves_and_no_file_changes(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    ground.git("checkout", "-q", "-b", "elsewhere")
    write(ground.project, {"a.txt": "dirty\n"})
    before = shown(ground.project)

    result = ground.merge(workspace)

    assert result.target == "main"
    assert ground.git("rev-parse", "main") == result.commit
    after = shown(ground.project)
    assert (after["files"], after["index"]) == (before["files"], before["index"])


def test_branch_in_another_worktree_of_the_user_is_updated_there(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    other = ground.folder / "other tree"
    ground.git("checkout", "-q", "-b", "elsewhere")
    ground.git("worktree", "add", "-q", other, "main")
    before = dump(ground.project, without=(".git",))

    ground.merge(workspace)

    assert (other / "a.txt").read_text() == last_line(TEXT)
    assert status(other) == ""
    assert dump(ground.project, without=(".git",)) == before

    write(other, {"a.txt": "dirty\n"})
    write(ground.directory(workspace), {"a.txt": TEXT})
    with pytest.raises(RefusedError, match="other tree"):
        ground.merge(ground.snapshot(workspace))


def test_branch_in_a_worktree_that_is_gone_is_refused(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    other = ground.folder / "other"
    ground.git("checkout", "-q", "-b", "elsewhere")
    ground.git("worktree", "add", "-q", other, "main")
    other.rename(ground.folder / "unmounted")

    with pytest.raises(WorkspaceError, match="is not there"):
        ground.merge(workspace)
    assert subjects(ground.project) == ["first"]


def test_branch_of_another_workspace_is_refused(ground: Ground) -> None:
    workspace, other = ground.worked(WORK), ground.make("job-2")

    with pytest.raises(RefusedError, match="is checked out in a workspace"):
        ground.merge(workspace, into=other.branch)
    with pytest.raises(RefusedError, match="the branch of the workspace itself"):
        ground.merge(workspace, into=workspace.branch)


def test_branch_is_chosen_by_name_base_and_checkout(ground: Ground) -> None:
    ground.git("branch", "stable")
    workspace = ground.worked(WORK)

    assert ground.merge(workspace, into="stable", is_dry_run=True).target == "stable"
    assert ground.merge(workspace, into="refs/heads/stable", is_dry_run=True).target == "stable"
    assert ground.merge(workspace, is_dry_run=True).target == "main"
    for base in ("v1", ground.git("rev-parse", "main"), "origin/main", None):
        assert ground.merge(changed(workspace, base=base), is_dry_run=True).target == "main"
    with pytest.raises(WorkspaceError, match="there is no branch 'missing'"):
        ground.merge(workspace, into="missing")
    ground.git("checkout", "-q", "--detach")
    with pytest.raises(WorkspaceError, match="no branch is checked out"):
        ground.merge(changed(workspace, base="v1"))


def test_base_that_was_deleted_is_replaced_by_what_is_checked_out(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    ground.git("checkout", "-q", "-b", "next")
    ground.git("branch", "-D", "main")

    assert ground.merge(workspace).target == "next"
    assert subjects(ground.project, "next")[0] == "Do the work"


def test_base_that_was_reset_is_merged_into_as_it_is_now(ground: Ground) -> None:
    write(ground.project, {"b.txt": first_line(TEXT)})
    commit(ground.project, "second")
    workspace = ground.worked(WORK)
    ground.git("reset", "-q", "--hard", "HEAD~1")
    write(ground.project, {"other.txt": "other\n"})
    commit(ground.project, "instead")

    ground.merge(workspace)

    assert ground.read("a.txt") == last_line(TEXT)
    assert ground.read("other.txt") == "other\n"
    assert ground.read("b.txt") == first_line(
        TEXT
    )  # the work was built on it, and git has it from there


def test_branch_without_common_history_is_refused(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    ground.git("checkout", "-q", "--orphan", "fresh")
    commit(ground.project, "fresh")
    before = shown(ground.project)

    with pytest.raises(RefusedError, match="branch fresh has no history in common"):
        ground.merge(workspace, into="fresh")
    assert shown(ground.project) == before


def test_shallow_clone_is_merged_into(ground: Ground) -> None:
    write(ground.project, {"b.txt": first_line(TEXT)})
    commit(ground.project, "second")
    clone = ground.folder / "clone"
    git(ground.folder, "clone", "-q", "--depth", "1", f"file://{ground.project}", clone)
    shallow = replace(ground, project=clone)
    workspace = shallow.worked(WORK)
    write(clone, {"b.txt": last_line(TEXT)})
    commit(clone, "mine")

    shallow.merge(workspace)

    assert shallow.read("a.txt") == last_line(TEXT)
    assert status(clone) == ""
    git(clone, "fsck", "--connectivity-only")


def test_sha256_repository_is_merged_into(ground: Ground, tmp_path: Path) -> None:
    project = tmp_path / "sha256"
    project.mkdir()
    git(project, "init", "-q", "-b", "main", "--object-format=sha256")
    write(project, {"a.txt": TEXT, "dir/c.txt": TEXT})
    commit(project, "first")
    other = replace(ground, project=project)

    result = other.merge(other.worked(WORK))

    assert result.commit is not None
    assert len(result.commit) == 64
    assert status(project) == ""


def test_split_index_is_merged_into(ground: Ground) -> None:
    ground.git("update-index", "--split-index")
    workspace = ground.worked(WORK)

    ground.merge(workspace)

    assert status(ground.project) == ""
    assert ground.read("a.txt") == last_line(TEXT)


def test_file_that_a_sparse_checkout_leaves_out_is_refused(ground: Ground) -> None:
    ground.git("sparse-checkout", "set", "--no-cone", "/*", "!/dir")
    workspace = ground.worked({"dir/c.txt": last_line(TEXT)})
    other = ground.worked({"a.txt": last_line(TEXT)}, "job-2")

    with pytest.raises(RefusedError, match="not checked out"):
        ground.merge(workspace)
    ground.merge(other)
    assert status(ground.project) == ""
    assert not (ground.project / "dir").exists()


def test_repository_without_a_directory_of_its_own_is_merged_into(ground: Ground) -> None:
    bare = ground.folder / "bare.git"
    git(ground.folder, "clone", "-q", "--bare", ground.project, bare)
    tree = ground.folder / "tree"
    git(bare, "worktree", "add", "-q", tree, "main")
    other = replace(ground, project=tree)

    other.merge(other.worked(WORK))

    assert (tree / "a.txt").read_text() == last_line(TEXT)
    assert status(tree) == ""


def test_git_directory_kept_elsewhere_is_merged_into(ground: Ground) -> None:
    away = ground.folder / "away.git"
    ground.git("init", "-q", "--separate-git-dir", away)
    workspace = ground.worked(WORK)

    ground.merge(workspace)

    assert ground.read("a.txt") == last_line(TEXT)
    assert status(ground.project) == ""


def test_symbolic_branch_is_refused(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    ground.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")

    with pytest.raises(RefusedError, match="another name of a branch"):
        ground.merge(workspace, into="alias")


def test_submodules_are_left_to_the_user(ground: Ground) -> None:
    library = make_repository(ground.folder / "library")
    git(
        ground.project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", library, "lib"
    )
    commit(ground.project, "submodule")
    ground.git("checkout", "-q", "-b", "bumped")
    write(ground.project / "lib", {"a.txt": "other\n"})
    commit(ground.project / "lib", "bump")
    commit(ground.project, "bump")
    ground.git("checkout", "-q", "main")
    workspace = changed(ground.make(), base="main")
    directory = ground.directory(workspace)
    git(directory, "merge", "-q", "--ff-only", "bumped")
    worked = ground.snapshot(workspace)

    with pytest.raises(RefusedError, match="submodules would change"):
        ground.merge(worked)


def test_landing_of_another_ground_is_untouched(tmp_path: Path, ground: Ground) -> None:
    other = lay(tmp_path / "second")

    other.merge(other.worked(WORK))

    assert subjects(ground.project) == ["first"]
