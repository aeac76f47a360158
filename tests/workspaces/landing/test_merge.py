"""Merge: the work of a workspace becomes a commit and is merged; the directory that has the branch follows, or nothing is."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from nightherd.errors import RefusedError, WorkspaceError
from nightherd.model.workspaces.policy import WorkspaceMode
from workspaces.landing.landing_ground import (
    TEXT,
    Ground,
    Meddling,
    commit,
    dump,
    first_line,
    git,
    last_line,
    shown,
    status,
    subjects,
    write,
)

WORK = {"a.txt": last_line(TEXT), "new/x.txt": "x\n", "dir/c.txt": None}


def test_branch_is_fast_forwarded_and_its_directory_follows(ground: Ground) -> None:
    workspace = ground.worked(WORK)

    result = ground.merge(workspace)

    assert (result.target, result.is_fast_forward) == ("main", True)
    assert result.paths == ("a.txt", "dir/c.txt", "new/x.txt")
    assert result.commit == ground.git("rev-parse", "main") == ground.git("rev-parse", "HEAD")
    assert subjects(ground.project) == ["Do the work", "first"]
    assert "nightherd job job-1" in ground.git("log", "-1", "--format=%b")
    assert ground.read("a.txt") == last_line(TEXT)
    assert not (ground.project / "dir").exists()
    assert status(ground.project) == ""
    assert ground.leftovers == []


def test_workspace_has_its_commit_and_is_clean(ground: Ground) -> None:
    workspace = ground.worked(WORK)

    result = ground.merge(workspace)

    assert ground.git("rev-parse", f"refs/heads/{workspace.branch}") == result.commit
    assert status(ground.directory(workspace)) == ""
    assert ground.snapshot(workspace).head == result.commit


def test_commit_is_by_nightherd_when_git_knows_nobody(ground: Ground) -> None:
    ground.merge(ground.worked(WORK))

    people = ground.git("log", "-1", "--format=%an %ae %cn %ce")
    assert people == "nightherd nightherd@localhost nightherd nightherd@localhost"


def test_commit_is_by_the_user_whom_git_knows(ground: Ground) -> None:
    config = "[user]\n\tname = Jo Do\n\temail = jo@example.org\n[commit]\n\tgpgSign = true\n"
    Path(os.environ["HOME"], ".gitconfig").write_text(config)

    ground.merge(ground.worked(WORK))

    assert (
        ground.git("log", "-1", "--format=%an %ae %cn %ce")
        == "Jo Do jo@example.org Jo Do jo@example.org"
    )


def test_branch_that_went_on_gets_a_merge_commit(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    write(ground.project, {"a.txt": first_line(TEXT)})
    mine = commit(ground.project, "mine")

    result = ground.merge(workspace)

    assert not result.is_fast_forward
    parents = ground.git("log", "-1", "--format=%P").split()
    assert parents == [mine, ground.git("rev-parse", f"refs/heads/{workspace.branch}")]
    assert subjects(ground.project)[0] == f"Merge branch '{workspace.branch}' into main"
    assert ground.read("a.txt") == first_line(last_line(TEXT))
    assert status(ground.project) == ""


def test_merge_commit_instead_of_a_fast_forward_when_asked(ground: Ground) -> None:
    result = ground.merge(ground.worked(WORK), is_fast_forward=False)

    assert not result.is_fast_forward
    assert len(ground.git("log", "-1", "--format=%P").split()) == 2


def test_second_time_there_is_nothing_to_do(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    ground.merge(workspace, is_fast_forward=False)
    before = shown(ground.project)

    again = ground.merge(workspace, is_fast_forward=False)

    assert again.is_nothing
    assert shown(ground.project) == before


def test_work_that_the_branch_has_already_is_not_merged(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    ground.apply(workspace)
    commit(ground.project, "applied and committed")
    before = shown(ground.project)

    assert ground.merge(workspace).is_nothing
    assert shown(ground.project) == before


def test_dry_run_says_what_would_change_and_changes_nothing(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    write(ground.project, {"b.txt": first_line(TEXT)})
    commit(ground.project, "mine")
    without = ("fleet/.nightherd/landing",)
    before = dump(ground.folder, without=without)

    result = ground.merge(workspace, is_dry_run=True)

    assert result.paths == ("a.txt", "dir/c.txt", "new/x.txt")
    assert dump(ground.folder, without=without) == before


def test_uncommitted_work_of_the_user_in_other_files_stays(ground: Ground) -> None:
    write(ground.project, {"b.txt": "stashed\n"})
    ground.git("stash")
    workspace = ground.worked(WORK)
    write(
        ground.project,
        {"b.txt": first_line(TEXT), "staged.txt": "staged\n", "untracked.txt": "u\n"},
    )
    ground.git("add", "staged.txt")
    before = status(ground.project)

    ground.merge(workspace)

    assert status(ground.project) == before
    assert ground.git("stash", "list").startswith("stash@{0}")
    assert ground.read("b.txt") == first_line(TEXT)


def test_conflicts_are_named_and_nothing_is_changed(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT), "b.txt": None, "n.txt": "n\n"})
    write(ground.project, {"a.txt": TEXT.replace("line 20\n", "XX\n"), "b.txt": first_line(TEXT)})
    commit(ground.project, "mine")
    without = ("fleet/.nightherd/landing",)
    before = dump(ground.folder, without=without)

    result = ground.merge(workspace)

    assert result.conflicts == ["a.txt", "b.txt"]
    assert dump(ground.folder, without=without) == before


def changed_file(ground: Ground) -> None:
    write(ground.project, {"a.txt": first_line(TEXT)})


def deleted_file(ground: Ground) -> None:
    write(ground.project, {"a.txt": None})


def staged_file(ground: Ground) -> None:
    write(ground.project, {"a.txt": first_line(TEXT)})
    ground.git("add", "a.txt")
    write(ground.project, {"a.txt": TEXT})


def untracked_file(ground: Ground) -> None:
    write(ground.project, {"new/x.txt": "mine\n"})


def ignored_file(ground: Ground) -> None:
    write(ground.project, {".git/info/exclude": "new\n", "new/x.txt": "mine\n"})


def untracked_in_the_way(ground: Ground) -> None:
    write(ground.project, {"new": "a file\n"})


def link_in_the_way(ground: Ground) -> None:
    (ground.project / "new").symlink_to(ground.folder)


def changed_mode(ground: Ground) -> None:
    (ground.project / "a.txt").chmod(0o755)


@pytest.mark.parametrize(
    "change",
    [
        changed_file,
        deleted_file,
        staged_file,
        untracked_file,
        ignored_file,
        untracked_in_the_way,
        link_in_the_way,
        changed_mode,
    ],
    ids=lambda change: change.__name__,
)
def test_files_that_are_not_as_committed_are_not_overwritten(
    ground: Ground, change: object
) -> None:
    workspace = ground.worked(WORK)
    assert callable(change)
    change(ground)
    without = ("fleet/.nightherd/landing",)
    before = dump(ground.folder, without=without)

    with pytest.raises(RefusedError, match="not as committed"):
        ground.merge(workspace)

    assert dump(ground.folder, without=without) == before
    assert ground.leftovers == []


def merging(ground: Ground) -> str:
    ground.git("checkout", "-q", "-b", "other")
    write(ground.project, {"z.txt": "other\n"})
    commit(ground.project, "other")
    ground.git("checkout", "-q", "main")
    ground.git("merge", "--no-commit", "--no-ff", "other")
    return "a merge is under way"


def picking(ground: Ground) -> str:
    write(ground.project, {"b.txt": "other\n"})
    other = commit(ground.project, "other")
    ground.git("reset", "-q", "--hard", "HEAD~1")
    write(ground.project, {"b.txt": "mine\n"})
    commit(ground.project, "mine")
    with pytest.raises(AssertionError):
        ground.git("cherry-pick", other)
    return "a cherry-pick is under way"


def rebasing(ground: Ground) -> str:
    ground.git("checkout", "-q", "-b", "other")
    write(ground.project, {"b.txt": "other\n"})
    commit(ground.project, "other")
    ground.git("checkout", "-q", "main")
    write(ground.project, {"b.txt": "mine\n"})
    commit(ground.project, "mine")
    with pytest.raises(AssertionError):
        ground.git("rebase", "other")
    return "in use by a rebase"


@pytest.mark.parametrize("begin", [merging, picking, rebasing], ids=lambda begin: begin.__name__)
def test_operation_of_the_user_that_is_under_way_is_not_disturbed(
    ground: Ground, begin: object
) -> None:
    workspace = ground.worked(WORK)
    assert callable(begin)
    text = begin(ground)
    before = dump(ground.project)

    with pytest.raises(RefusedError, match=text):
        ground.merge(workspace, into="main")

    assert dump(ground.project) == before


def test_commits_of_the_agent_are_merged_as_they_are(ground: Ground) -> None:
    workspace = ground.make()
    directory = ground.directory(workspace)
    write(directory, WORK)
    own = commit(directory, "by the agent")

    result = ground.merge(ground.snapshot(workspace))

    assert result.commit == own
    assert subjects(ground.project) == ["by the agent", "first"]


def test_what_the_agent_did_not_commit_is_committed_on_top(ground: Ground) -> None:
    workspace = ground.make()
    directory = ground.directory(workspace)
    write(directory, WORK)
    commit(directory, "by the agent")
    write(directory, {"b.txt": last_line(TEXT), "staged.txt": "s\n"})
    git(directory, "add", "staged.txt")

    ground.merge(ground.snapshot(workspace))

    assert subjects(ground.project) == ["Do the work", "by the agent", "first"]
    assert status(directory) == ""


def test_commits_that_a_person_added_in_the_workspace_are_part_of_it(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT), "b.txt": last_line(TEXT)})
    directory = ground.directory(workspace)
    git(directory, "add", "b.txt")
    git(directory, "commit", "-q", "-m", "by a person")

    ground.merge(workspace)

    assert subjects(ground.project) == ["Do the work", "by a person", "first"]
    assert ground.read("a.txt") == ground.read("b.txt") == last_line(TEXT)


def test_person_who_committed_everything_is_the_last_word(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    write(ground.directory(workspace), {"more.txt": "more\n"})
    own = commit(ground.directory(workspace), "all, and more")

    assert ground.merge(workspace).commit == own
    assert ground.read("more.txt") == "more\n"


def test_conflicts_that_a_person_resolved_in_the_workspace_are_merged(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    write(ground.project, {"a.txt": TEXT.replace("line 20\n", "mine\n")})
    commit(ground.project, "mine")
    assert ground.merge(workspace).conflicts == ["a.txt"]
    directory = ground.directory(workspace)
    commit(directory, "the work")
    with pytest.raises(AssertionError):
        git(directory, "merge", "-q", "main")
    write(directory, {"a.txt": TEXT.replace("line 20\n", "both\n")})
    resolved = commit(directory, "resolved")

    result = ground.merge(workspace)

    assert result.commit == resolved
    assert ground.read("a.txt") == TEXT.replace("line 20\n", "both\n")


def test_person_who_committed_something_else_decides_by_hand(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    write(ground.directory(workspace), {"a.txt": TEXT.replace("line 20\n", "XX\n")})
    commit(ground.directory(workspace), "otherwise")
    before = shown(ground.project)

    with pytest.raises(RefusedError, match=r"conflict with it: 'a\.txt'"):
        ground.merge(workspace)
    assert shown(ground.project) == before


def test_earlier_work_is_merged_without_moving_the_branch(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT)})
    write(ground.directory(workspace), {"b.txt": last_line(TEXT)})
    tip = ground.git("rev-parse", f"refs/heads/{workspace.branch}")

    ground.merge(workspace, is_last=False)

    assert ground.read("a.txt") == last_line(TEXT)
    assert ground.read("b.txt") == TEXT
    assert ground.git("rev-parse", f"refs/heads/{workspace.branch}") == tip
    assert ground.merge(workspace, is_last=False).is_nothing


def test_more_work_after_a_merge_is_merged_too(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT)})
    ground.merge(workspace)
    write(ground.directory(workspace), {"a.txt": last_line(TEXT).replace("twenty", "20 again")})

    ground.merge(ground.snapshot(workspace))

    assert "line 20 again\n" in ground.read("a.txt")


def test_workspace_that_was_removed_is_merged_from_its_snapshot(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    anyio.run(ground.files.remove, workspace)
    assert not ground.directory(workspace).exists()

    ground.merge(workspace)

    assert ground.read("a.txt") == last_line(TEXT)
    assert ground.git("branch", "--list", "nightherd/*") == ""


def test_line_endings_are_committed_as_the_attributes_say(tmp_path: Path, ground: Ground) -> None:
    dos = TEXT.replace("\n", "\r\n")
    write(ground.project, {".gitattributes": "*.bat text eol=crlf\n", "x.bat": dos, "y.bat": dos})
    commit(ground.project, "dos")
    workspace = ground.worked({"x.bat": last_line(TEXT).replace("\n", "\r\n"), "new.bat": dos})
    write(ground.project, {"y.bat": first_line(TEXT).replace("\n", "\r\n")})
    commit(ground.project, "mine")

    ground.merge(workspace)

    assert ground.git("show", "main:x.bat") == last_line(TEXT).removesuffix("\n")
    assert ground.git("diff", "--stat", "main~1", "main", "--", "x.bat").endswith(
        "1 insertion(+), 1 deletion(-)"
    )
    assert (ground.project / "x.bat").read_bytes() == last_line(TEXT).replace("\n", "\r\n").encode()
    assert (ground.project / "new.bat").read_bytes() == dos.encode()
    assert status(ground.project) == ""


def test_lock_of_another_git_command_is_respected(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    lock = ground.project / ".git" / "index.lock"
    lock.write_text("")
    before = dump(ground.project)

    with pytest.raises(WorkspaceError, match=r"index\.lock' is there") as raised:
        ground.merge(workspace)

    assert raised.value.can_pass
    assert dump(ground.project, without=(".git/objects",)) == {
        path: entry for path, entry in before.items() if not path.startswith(".git/objects")
    }
    lock.unlink()
    ground.merge(workspace)
    assert status(ground.project) == ""


def test_branch_that_moves_meanwhile_is_merged_again(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    ground.git("checkout", "-q", "-b", "elsewhere")
    other = ground.folder / "other"
    ground.git("worktree", "add", "-q", "--detach", other, "main")

    def move() -> None:
        write(other, {"b.txt": first_line(TEXT)})
        ground.git("update-ref", "refs/heads/main", commit(other, "quick"))

    replace(ground, probe=Meddling("landing.before_ref", move)).merge(workspace)

    assert set(subjects(ground.project)) > {"quick", "Do the work", "first"}
    assert ground.git("show", "main:b.txt") == first_line(TEXT).removesuffix("\n")
    assert ground.git("show", "main:a.txt") == last_line(TEXT).removesuffix("\n")


def test_index_that_changes_meanwhile_is_kept(ground: Ground) -> None:
    workspace = ground.worked(WORK)

    def stage() -> None:
        write(ground.project, {"b.txt": first_line(TEXT)})
        ground.git("add", "b.txt")

    replace(ground, probe=Meddling("landing.after_record", stage)).merge(workspace)

    assert status(ground.project) == "M  b.txt"
    assert subjects(ground.project) == ["Do the work", "first"]


def test_file_that_changes_at_the_last_moment_takes_the_branch_back(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT), "b.txt": last_line(TEXT)})
    before = shown(ground.project)
    edit = Meddling("landing.after_file", lambda: write(ground.project, {"b.txt": "mine\n"}))

    with pytest.raises(RefusedError, match="nothing was changed"):
        replace(ground, probe=edit).merge(workspace)

    assert ground.read("b.txt") == "mine\n"
    write(ground.project, {"b.txt": TEXT})
    assert shown(ground.project) == before
    assert ground.leftovers == []


def test_full_disk_takes_the_branch_back(ground: Ground) -> None:
    workspace = ground.worked(WORK)
    before = shown(ground.project)

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for point, nth in (("landing.before_file", 2), ("landing.before_index", 1)):
        with pytest.raises(WorkspaceError, match="nothing was changed"):
            replace(ground, probe=Meddling(point, fail, nth)).merge(workspace)
        assert shown(ground.project) == before
        assert ground.leftovers == []
    ground.merge(workspace)
    assert status(ground.project) == ""


def test_copy_of_a_directory_cannot_be_merged(ground: Ground) -> None:
    copied = ground.with_mode(WorkspaceMode.COPY)

    with pytest.raises(WorkspaceError, match="is no git worktree"):
        copied.merge(copied.worked({"a.txt": last_line(TEXT)}))
