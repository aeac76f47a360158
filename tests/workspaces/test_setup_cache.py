"""What setup commands made: known by the files that they depend on, which an agent can exchange for anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nightherd.model.workspaces.policy import SetupCommand
from nightherd.workspaces.setup_cache import LocalSetupCache
from workspaces.scene import Scene, write

COMMAND = SetupCommand(run="make", files=("lock/file",), paths=("made",))


def test_key_depends_on_the_content_of_files(scene: Scene) -> None:
    scene.make()
    cache = LocalSetupCache(scene.state, scene.files)
    write(scene.top(), {"lock/file": "one", "lock/other": "one"})
    first = cache.key(scene.row(), COMMAND)
    write(scene.top(), {"lock/file": "two"})
    assert cache.key(scene.row(), COMMAND) != first
    (scene.top() / "lock" / "file").unlink()
    (scene.top() / "lock" / "file").symlink_to("other")
    assert cache.key(scene.row(), COMMAND) == first


@pytest.mark.parametrize("what", ["pipe", "link", "linked directory", "circle", "directory"])
def test_file_that_is_none_counts_as_missing(scene: Scene, tmp_path: Path, what: str) -> None:
    scene.make()
    cache = LocalSetupCache(scene.state, scene.files)
    missing = cache.key(scene.row(), COMMAND)
    folder = scene.top() / "lock"
    write(tmp_path / "outside", {"file": "secret"})
    if what == "linked directory":
        folder.symlink_to(tmp_path / "outside")
    else:
        folder.mkdir()
    match what:
        case "pipe":
            os.mkfifo(folder / "file")
        case "link":
            (folder / "file").symlink_to(tmp_path / "outside" / "file")
        case "circle":
            (folder / "file").symlink_to("file")
        case "directory":
            (folder / "file").mkdir()
        case _:
            pass
    assert cache.key(scene.row(), COMMAND) == missing
