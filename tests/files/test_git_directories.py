"""What a container sees of git: nothing that an agent could have named itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from components import Components
from nightherd.files.git_directories import git_directories


@pytest.fixture
def repository(components: Components, tmp_path: Path) -> Path:
    """A repository with a commit, which borrows objects of another one."""
    components.program("git")
    _git(tmp_path, "init", "-q", "lender")
    for key, value in (("user.name", "Someone"), ("user.email", "someone@example.invalid")):
        _git(tmp_path / "lender", "config", key, value)
    _git(tmp_path / "lender", "commit", "-q", "--allow-empty", "-m", "first")
    _git(tmp_path, "clone", "-q", "--shared", "lender", "home")
    return tmp_path / "home"


def _git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=directory, check=True)


def test_worktree_is_seen_with_its_repository(repository: Path, tmp_path: Path) -> None:
    _git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))

    assert git_directories(str(tmp_path / "tree")) == (
        str(tmp_path / "tree" / ".git"),
        str(repository / ".git"),
    )


def test_git_directory_in_the_work_tree_names_no_other(repository: Path) -> None:
    """Its alternates could have been written by an agent, to read what they name."""
    assert git_directories(str(repository)) == (str(repository / ".git"),)


def test_git_file_that_names_any_repository_is_not_followed(
    repository: Path, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {repository / '.git'}\n")

    assert git_directories(str(work)) == (str(work / ".git"),)


def test_repository_that_an_agent_has_forged_names_no_other(
    repository: Path, tmp_path: Path
) -> None:
    """In its working directory, or in any other one that it may write."""
    work = tmp_path / "work"
    forged = tmp_path / "writable" / "worktrees" / "x"
    for directory in (work, forged):
        directory.mkdir(parents=True)
    (work / ".git").write_text(f"gitdir: {forged}\n")
    (forged / "HEAD").touch()
    (forged / "commondir").write_text("../..\n")
    (forged / "gitdir").write_text(f"{work / '.git'}\n")
    info = tmp_path / "writable" / "objects" / "info"
    info.mkdir(parents=True)
    (info / "alternates").write_text(f"{repository}\n")

    assert git_directories(str(work)) == (str(work / ".git"), str(tmp_path / "writable"))
