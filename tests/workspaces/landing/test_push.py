"""Push: the work of a workspace sent to a remote as its branch; credentials are never shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
from msgspec.structs import replace as changed

from nightherd.errors import RefusedError, WorkspaceError
from nightherd.model.workspaces.policy import CloneTerms
from workspaces.git_server import GitServer, serving
from workspaces.landing.landing_ground import (
    TEXT,
    Ground,
    Meddling,
    commit,
    dump,
    git,
    last_line,
    shown,
    write,
)

WORK: dict[str, str | bytes | None] = {"a.txt": last_line(TEXT), "new/x.txt": "x\n"}


@pytest.fixture
def remote(ground: Ground) -> Path:
    """A bare repository that is the project's `origin`, with its main branch."""
    bare = ground.folder / "remote.git"
    git(ground.folder, "init", "-q", "--bare", "-b", "main", bare)
    ground.git("remote", "add", "origin", f"file://{bare}")
    ground.git("push", "-q", "origin", "main")
    return bare


def tip(remote: Path, branch: str | None) -> str:
    return git(remote, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")


def test_work_is_pushed_as_the_branch_of_the_workspace(ground: Ground, remote: Path) -> None:
    workspace = ground.worked(WORK)
    before = shown(ground.project)

    result = ground.push(workspace)

    assert result.target == f"origin {workspace.branch}"
    assert result.paths == ("a.txt", "new/x.txt")
    assert tip(remote, workspace.branch) == result.commit
    assert git(remote, "show", f"{workspace.branch}:a.txt") == last_line(TEXT).removesuffix("\n")
    assert git(remote, "log", "-1", "--format=%s", str(workspace.branch)) == "Do the work"
    assert ground.git("rev-parse", f"refs/remotes/origin/{workspace.branch}") == result.commit
    assert ground.git("rev-parse", f"refs/heads/{workspace.branch}") == result.commit
    assert git(ground.directory(workspace), "status", "--porcelain") == ""
    after = shown(ground.project)
    assert [after[key] for key in ("files", "index", "head")] == [
        before[key] for key in ("files", "index", "head")
    ]
    assert ground.leftovers == []


def test_second_push_has_nothing_to_do_and_more_work_is_added(ground: Ground, remote: Path) -> None:
    workspace = ground.worked(WORK)
    first = ground.push(workspace)

    assert ground.push(workspace).is_nothing
    write(ground.directory(workspace), {"more.txt": "more\n"})
    second = ground.push(ground.snapshot(workspace))

    assert git(remote, "rev-parse", f"{second.commit}^") == first.commit
    assert tip(remote, workspace.branch) == second.commit


def test_dry_run_pushes_nothing(ground: Ground, remote: Path) -> None:
    workspace = ground.worked(WORK)
    without = ("fleet/.nightherd/landing",)
    before = dump(ground.folder, without=without)

    result = ground.push(workspace, is_dry_run=True)

    assert not result.is_nothing
    assert result.paths == ("a.txt", "new/x.txt")
    assert dump(ground.folder, without=without) == before


def test_other_work_at_the_remote_is_replaced_only_when_forced(
    ground: Ground, remote: Path
) -> None:
    workspace = ground.worked(WORK)
    other = ground.folder / "clone"
    git(ground.folder, "clone", "-q", remote, other)
    theirs = commit(other, "theirs")
    git(other, "push", "-q", "origin", f"HEAD:refs/heads/{workspace.branch}")
    before = shown(ground.project)

    with pytest.raises(RefusedError, match="has commits that this one has not"):
        ground.push(workspace)
    assert tip(remote, workspace.branch) == theirs
    assert shown(ground.project) == before

    result = ground.push(workspace, is_forced=True)
    assert tip(remote, workspace.branch) == result.commit


def test_forced_push_never_replaces_what_was_not_seen(ground: Ground, remote: Path) -> None:
    workspace = ground.worked(WORK)
    ground.push(workspace)
    other = ground.folder / "clone"
    git(ground.folder, "clone", "-q", "--branch", str(workspace.branch), remote, other)
    theirs = commit(other, "theirs")
    git(other, "push", "-q", "origin", "HEAD")
    write(ground.directory(workspace), {"more.txt": "more\n"})

    with pytest.raises(RefusedError, match="not what was seen there last"):
        ground.push(ground.snapshot(workspace), is_forced=True)

    assert tip(remote, workspace.branch) == theirs


def test_branch_that_moves_at_the_remote_meanwhile_is_not_overwritten(
    ground: Ground, remote: Path
) -> None:
    workspace = ground.worked(WORK)
    ground.push(workspace)
    other = ground.folder / "clone"
    git(ground.folder, "clone", "-q", "--branch", str(workspace.branch), remote, other)
    theirs = commit(other, "theirs")
    write(ground.directory(workspace), {"more.txt": "more\n"})
    late = ground.snapshot(workspace)
    tip_before = ground.git("rev-parse", f"refs/heads/{workspace.branch}")
    move = Meddling("landing.before_push", lambda: git(other, "push", "-q", "origin", "HEAD"))

    with pytest.raises(WorkspaceError, match="origin cannot be pushed to"):
        replace(ground, probe=move).push(late)

    assert tip(remote, workspace.branch) == theirs
    assert ground.git("rev-parse", f"refs/heads/{workspace.branch}") == tip_before


def test_remote_is_named_or_an_address(ground: Ground, remote: Path) -> None:
    second = ground.folder / "second.git"
    git(ground.folder, "init", "-q", "--bare", second)
    ground.git("remote", "add", "fork", f"file://{second}")
    workspace = ground.worked(WORK)

    assert ground.push(workspace, remote="fork").target == f"fork {workspace.branch}"
    assert tip(second, workspace.branch) != ""
    assert tip(remote, workspace.branch) == ""

    third = ground.folder / "third.git"
    git(ground.folder, "init", "-q", "--bare", third)
    ground.push(workspace, remote=f"file://{third}")
    assert tip(third, workspace.branch) == tip(second, workspace.branch)
    assert ground.git("for-each-ref", "refs/remotes/origin/nightherd") == ""


def test_push_address_of_a_remote_is_used(ground: Ground, remote: Path) -> None:
    second = ground.folder / "second.git"
    git(ground.folder, "init", "-q", "--bare", second)
    ground.git("config", "remote.origin.pushurl", f"file://{second}")
    workspace = ground.worked(WORK)

    ground.push(workspace)

    assert tip(second, workspace.branch) != ""


def test_hooks_of_a_repository_that_a_person_names_run(ground: Ground, remote: Path) -> None:
    hook = remote / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ground.folder}/deployed\n")
    hook.chmod(0o755)
    workspace = ground.worked(WORK)

    ground.push(workspace)
    assert not (ground.folder / "deployed").exists()

    write(ground.directory(workspace), {"more.txt": "more\n"})
    ground.push(ground.snapshot(workspace), remote=str(remote))
    assert (ground.folder / "deployed").exists()


def test_repository_without_remote_says_so(ground: Ground) -> None:
    with pytest.raises(WorkspaceError, match="has no remote 'origin'") as raised:
        ground.push(ground.worked(WORK))
    assert raised.value.hint == "git remote add origin URL, or name one with --remote"


def test_remote_that_does_not_answer_is_an_error_without_credentials(ground: Ground) -> None:
    ground.git("remote", "add", "origin", "https://jo:hunter2@localhost:1/x/y.git")
    workspace = ground.worked(WORK)

    with pytest.raises(WorkspaceError, match="the remote origin cannot be read") as raised:
        ground.push(workspace)
    assert "hunter2" not in raised.value.message

    with pytest.raises(WorkspaceError) as named:
        ground.push(workspace, remote="https://jo:hunter2@localhost:1/x/y.git")
    assert "hunter2" not in named.value.message
    assert "https://localhost:1/x/y.git" in named.value.message


def test_page_for_a_pull_request_is_named(ground: Ground, remote: Path) -> None:
    """The address that is pushed to is rewritten by the user's own configuration, as with plain git."""
    home = ground.folder / "home" / ".gitconfig"
    home.write_text(f'[url "file://{remote}"]\n\tinsteadOf = git@github.com:acme/rocket.git\n')
    ground.git("remote", "set-url", "origin", "git@github.com:acme/rocket.git")
    workspace = ground.worked(WORK)

    result = ground.push(workspace)

    assert (
        result.url == f"https://github.com/acme/rocket/compare/main...{workspace.branch}?expand=1"
    )
    assert tip(remote, workspace.branch) == result.commit
    elsewhere = ground.push(changed(workspace, base="v1"))
    assert elsewhere.url == f"https://github.com/acme/rocket/compare/{workspace.branch}?expand=1"


def test_shallow_clone_is_pushed_from(ground: Ground, remote: Path) -> None:
    commit(ground.project, "second")
    ground.git("push", "-q", "origin", "main")
    clone = ground.folder / "clone"
    git(ground.folder, "clone", "-q", "--depth", "1", f"file://{remote}", clone)
    shallow = replace(ground, project=clone)
    workspace = shallow.worked(WORK)

    result = shallow.push(workspace)

    assert tip(remote, workspace.branch) == result.commit
    git(remote, "fsck", "--connectivity-only")


USER, PASSWORD = "herder", "p@ss'w%41rd"


@pytest.fixture
def server(ground: Ground) -> Iterator[GitServer]:
    """A server that lets one user in, with a copy of the project."""
    served = ground.folder / "served"
    served.mkdir()
    git(ground.folder, "clone", "-q", "--bare", ground.project, served / "x.git")
    git(served / "x.git", "config", "http.receivepack", "true")
    with serving(served) as server:
        server.login = (USER, PASSWORD)
        yield server


def test_credentials_of_the_clone_open_the_remote(ground: Ground, server: GitServer) -> None:
    ground.git("remote", "add", "origin", server.url("x.git"))
    workspace = ground.worked(WORK)
    login = CloneTerms(url=server.url("x.git"), username=USER, password=PASSWORD)

    with pytest.raises(WorkspaceError, match="the remote origin cannot be read"):
        ground.push(workspace)
    other = CloneTerms(url=server.url("other.git"), username=USER, password=PASSWORD)
    with pytest.raises(WorkspaceError, match="the remote origin cannot be read"):
        ground.push(workspace, login=other)
    assert {given for given in server.logins if given} == set(), "credentials of another repository"

    result = ground.push(workspace, login=login)

    assert tip(ground.folder / "served" / "x.git", workspace.branch) == result.commit


def test_credentials_in_an_address_reach_no_argument(
    ground: Ground, server: GitServer, tmp_path: Path
) -> None:
    seen = tmp_path / "arguments"
    program = tmp_path / "spy"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {seen}\nexec git "$@"\n')
    program.chmod(0o755)
    secret = quote(PASSWORD, safe="")
    ground.git("remote", "add", "origin", server.url("x.git", f"{USER}:{secret}@"))
    workspace = ground.worked(WORK)

    result = replace(ground, program=str(program)).push(workspace)

    assert tip(ground.folder / "served" / "x.git", workspace.branch) == result.commit
    assert server.url("x.git") in seen.read_text()
    assert secret not in seen.read_text()
    assert PASSWORD not in seen.read_text()
    assert secret not in repr(result)


def test_remote_beside_the_repository_is_found(ground: Ground, remote: Path) -> None:
    ground.git("remote", "set-url", "origin", "../remote.git")
    workspace = ground.worked(WORK)

    result = ground.push(workspace)

    assert tip(remote, workspace.branch) == result.commit


def test_workspace_that_was_removed_is_pushed_and_applied(ground: Ground, remote: Path) -> None:
    workspace = ground.worked(WORK)
    anyio.run(ground.files.remove, workspace)

    result = ground.push(workspace)

    assert tip(remote, workspace.branch) == result.commit
    assert ground.push(workspace).is_nothing
    assert ground.apply(workspace).paths == ("a.txt", "new/x.txt")
