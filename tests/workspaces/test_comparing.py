"""Comparing snapshots: paths, patches and summaries, as git would show them and without anything of the user's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from nightherd.ports import ChangedPath, Made
from workspaces.scene import Scene, files_in, git, noted, write

LONG = "".join(f"line {number}\n" for number in range(50))


@pytest.fixture
def made(scene: Scene) -> Made:
    return scene.make()


def test_changed_paths_name_what_happened_to_each(scene: Scene, made: Made) -> None:
    row = noted(scene.row(), made)
    write(scene.top(), {"long.txt": LONG, "typed": "a file\n"})
    before = scene.snapshot(row).tree
    (scene.top() / "long.txt").rename(scene.top() / "moved.txt")
    (scene.top() / "typed").unlink()
    (scene.top() / "typed").symlink_to("README.md")
    (scene.top() / "README.md").unlink()
    write(scene.top(), {"src/app.py": "print('baa')\nprint('moo')\n", "new.bin": b"\0\1"})
    after = scene.snapshot(row).tree
    assert scene.reader.changed_paths(made.store, before, after) == [
        ChangedPath(path="README.md", status="deleted", added=0, removed=1),
        ChangedPath(path="moved.txt", status="renamed", added=0, removed=0, old_path="long.txt"),
        ChangedPath(path="new.bin", status="added"),
        ChangedPath(path="src/app.py", status="modified", added=1, removed=0),
        ChangedPath(path="typed", status="type_changed", added=1, removed=1),
    ]


def test_same_trees_differ_in_nothing(scene: Scene, made: Made) -> None:
    tree = str(made.base_tree)
    assert scene.reader.changed_paths(made.store, tree, tree) == []
    assert scene.reader.patch(made.store, tree, tree) == b""
    assert scene.reader.stat_text(made.store, tree, tree) == ""


def test_patch_can_be_applied(scene: Scene, made: Made, tmp_path: Path) -> None:
    write(
        scene.top(),
        {"src/app.py": "changed\n", "new.bin": bytes(range(256)), "a b\nc": "odd name\n"},
    )
    (scene.top() / "README.md").rename(scene.top() / "READ.md")
    after = scene.snapshot(noted(scene.row(), made)).tree
    patch = scene.reader.patch(made.store, str(made.base_tree), after)
    git(tmp_path, "clone", "--quiet", str(scene.root), "clone")
    subprocess.run(["git", "apply"], cwd=tmp_path / "clone", input=patch, check=True)
    assert files_in(tmp_path / "clone") == files_in(scene.top())


def test_colours_are_there_only_when_asked_for(scene: Scene, made: Made) -> None:
    write(scene.top(), {"README.md": "changed\n"})
    after = scene.snapshot(noted(scene.row(), made)).tree
    trees = (made.store, str(made.base_tree), after)
    assert b"\x1b[" not in scene.reader.patch(*trees)
    assert b"\x1b[" in scene.reader.patch(*trees, is_coloured=True)
    assert "\x1b[" in scene.reader.stat_text(*trees, is_coloured=True)
    assert scene.reader.stat_text(*trees).split() == [
        "README.md", "|", "2", "+-", "1", "file", "changed,", "1", "insertion(+),", "1", "deletion(-)",
    ]  # fmt: skip


def test_snapshots_of_two_stores_are_compared(scene: Scene, made: Made, tmp_path: Path) -> None:
    write(tmp_path / "other", {"README.md": "of another directory\n"})
    scene.policy = WorkspacePolicy(mode=WorkspaceMode.COPY)
    other = scene.make(scene.row("job-2", root=str(tmp_path / "other")))
    assert other.store != made.store
    trees = (made.store, str(made.base_tree), other.snapshot.tree)
    assert b"+of another directory" in scene.reader.patch(*trees, other=other.store)
    assert "README.md" in scene.reader.stat_text(*trees, other=other.store)
    assert {path.path for path in scene.reader.changed_paths(*trees, other=other.store)} == {
        "README.md", "src/app.py", "src/lib/cow.py",
    }  # fmt: skip


def test_snapshot_is_there_or_not(scene: Scene, made: Made) -> None:
    reader = scene.reader
    assert reader.has(made.store, str(made.base_tree))
    assert not reader.has(made.store, "1" * 40)
    assert not reader.has("0" * 16, str(made.base_tree))
    (scene.root / ".git" / "objects").rename(scene.root / ".git" / "away")
    assert not reader.has(made.store, str(made.base_tree))


def test_missing_snapshot_is_an_error_that_says_so(scene: Scene, made: Made) -> None:
    with pytest.raises(WorkspaceError, match="two snapshots cannot be compared"):
        scene.reader.patch(made.store, str(made.base_tree), "1" * 40)
    with pytest.raises(WorkspaceError, match="the store of these snapshots is missing"):
        scene.reader.patch("0" * 16, str(made.base_tree), str(made.base_tree))
