"""Writing below directories that an agent can change: links on the way are refused, one at the end is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nightherd.files.git_directories import git_directories
from nightherd.files.without_links import make_directories, replace_without_links


def test_file_is_replaced_and_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / "file").symlink_to(outside)
    replace_without_links(tmp_path / "file", b"new", mode=0o640, times=(5, 6))
    assert not (tmp_path / "file").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    status = (tmp_path / "file").stat()
    assert (status.st_mode & 0o777, status.st_mtime_ns) == (0o640, 6)
    assert outside.read_text() == "mine"


def test_link_on_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        replace_without_links(tmp_path / "link" / "file", b"x", mode=0o600)
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        make_directories(tmp_path, "link/inner")
    assert list((tmp_path / "real").iterdir()) == []


def test_nothing_is_left_of_a_file_that_cannot_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_without_links(tmp_path / "file", b"x", mode=0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_file_is_of_whom_its_directory_is_of(tmp_path: Path) -> None:
    # Only root can give files away.
    owner = (1000, 1001) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(tmp_path, *owner)
    replace_without_links(tmp_path / "file", b"x", mode=0o600)
    status = (tmp_path / "file").stat()
    assert (status.st_uid, status.st_gid) == owner


def test_directories_that_are_made_are_of_whom_those_around_them_are_of(tmp_path: Path) -> None:
    owner = (1000, 1001) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    (tmp_path / "old").mkdir()
    os.chown(tmp_path / "old", *owner)
    make_directories(tmp_path, "old/new/inner")
    for name in ("old", "old/new", "old/new/inner"):
        status = (tmp_path / name).stat()
        assert (status.st_uid, status.st_gid) == owner


def test_git_file_that_names_a_directory_of_something_else_names_nothing(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "HEAD").write_text("not git's")
    work = tmp_path / "work"
    work.mkdir()
    assert git_directories(str(work)) == ()
    (work / ".git").write_text(f"gitdir: {secrets}\n")
    assert git_directories(str(work)) == (str(work / ".git"),)
    (secrets / "commondir").write_text("/\n")
    (secrets / "gitdir").write_text(f"{work}/.git\n")
    assert git_directories(str(work)) == (str(work / ".git"),)
