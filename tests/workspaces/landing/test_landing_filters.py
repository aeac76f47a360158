"""Files that Git LFS keeps elsewhere: never committed with their content, and recognised when they did not change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightherd.errors import RefusedError
from workspaces.landing.landing_ground import TEXT, Ground, commit, git, last_line, status, write

ATTRIBUTES = "*.bin filter=lfs diff=lfs merge=lfs -text\n*.odd filter=nobody\n"
OLD, NEW = b"old \0 content" * 100, b"new \0 content" * 100


def pointer(content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"


@pytest.fixture
def large(ground: Ground) -> Iterator[Ground]:
    """A repository with two files in LFS, which are checked out, and a user who has LFS."""
    write(
        ground.project, {".gitattributes": ATTRIBUTES, "x.bin": pointer(OLD), "y.bin": pointer(OLD)}
    )
    commit(ground.project, "pointers")
    run = f"touch {ground.folder}/ran"
    config = f'[filter "lfs"]\n\tclean = {run}\n\tsmudge = {run}\n\trequired = true\n'
    Path(os.environ["HOME"], ".gitconfig").write_text(config)
    write(ground.project, {"x.bin": OLD, "y.bin": OLD})
    yield ground
    assert not (ground.folder / "ran").exists()


def test_large_files_that_the_setup_fetched_are_not_part_of_the_work(large: Ground) -> None:
    workspace = large.worked({"x.bin": OLD, "y.bin": OLD, "a.txt": last_line(TEXT)})

    result = large.merge(workspace)

    assert result.paths == ("a.txt",)
    assert git(large.project, "cat-file", "-p", "main:x.bin") == pointer(OLD).removesuffix("\n")
    assert (large.project / "x.bin").read_bytes() == OLD
    assert large.apply(workspace).is_nothing


def test_changed_large_file_has_to_be_committed_by_whoever_has_lfs(large: Ground) -> None:
    workspace = large.worked({"x.bin": NEW, "y.bin": OLD})
    before = git(large.project, "for-each-ref")

    with pytest.raises(RefusedError, match=r"that a filter of git converts: 'x\.bin'") as raised:
        large.merge(workspace)

    assert raised.value.hint == "commit them in the workspace, where filters run"
    assert git(large.project, "for-each-ref") == before
    # As `git commit` with LFS leaves it: the pointer on the branch, the content on disk.
    directory = large.directory(workspace)
    write(directory, {"x.bin": pointer(NEW), "y.bin": pointer(OLD)})
    commit(directory, "new content")
    write(directory, {"x.bin": NEW, "y.bin": OLD})

    large.merge(large.snapshot(workspace))

    assert git(large.project, "cat-file", "-p", "main:x.bin") == pointer(NEW).removesuffix("\n")
    assert (large.project / "x.bin").read_text() == pointer(NEW)
    assert (large.project / "y.bin").read_bytes() == OLD


def test_changed_large_file_is_applied_as_it_is(large: Ground) -> None:
    workspace = large.worked({"x.bin": NEW, "y.bin": OLD})

    assert large.apply(workspace).paths == ("x.bin",)
    assert (large.project / "x.bin").read_bytes() == NEW

    write(large.project, {"x.bin": b"mine"})
    assert large.apply(workspace).conflicts == ["x.bin"]


def test_filter_that_the_user_does_not_have_means_nothing(large: Ground) -> None:
    workspace = large.worked({"some.odd": "odd\n"})

    large.merge(workspace)

    assert large.read("some.odd") == "odd\n"
    assert "some.odd" not in status_without_filters(large)


def status_without_filters(ground: Ground) -> str:
    Path(os.environ["HOME"], ".gitconfig").unlink()
    return status(ground.project)
