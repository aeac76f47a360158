"""Stores: made whole by any number of processes, configured by nobody else, and reading from where the objects are."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from nightherd.errors import WorkspaceError
from nightherd.workspaces.git import Git
from nightherd.workspaces.stores import Source, Stores, store_name
from workspaces.scene import Scene, commit, git, new_repository


def source_of(repository: Path) -> Source:
    return Source(objects=str(repository / ".git" / "objects"))


def test_store_reads_the_objects_of_its_source(scene: Scene) -> None:
    store = Stores(scene.state).ensure("a", source_of(scene.root))
    head = git(scene.root, "rev-parse", "HEAD")
    assert Git().run(store.reading(), "cat-file", "-t", head) == b"commit\n"
    assert Git().run(store.checkout(), "cat-file", "-t", head) == b"commit\n"
    assert Git().attempt(store.writing(), "cat-file", "-t", head).status != 0


def test_what_is_written_is_kept_though_the_source_has_it(scene: Scene) -> None:
    store = Stores(scene.state).ensure("a", source_of(scene.root))
    blob = (
        Git()
        .run(store.writing(), "hash-object", "-w", "--stdin", data=b"# herd\n")
        .decode()
        .strip()
    )
    assert git(scene.root, "rev-parse", "HEAD:README.md") == blob
    assert (Path(store.kept) / blob[:2] / blob[2:]).is_file()


def test_store_made_again_is_the_same_and_a_half_made_one_is_completed(scene: Scene) -> None:
    stores = Stores(scene.state)
    with pytest.raises(WorkspaceError, match="is missing"):
        stores.open("a")
    store = stores.ensure("a", source_of(scene.root))
    path = Path(store.path)
    kept = {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    (path / "HEAD").unlink()
    (path / "config").write_text("[core]\n\tfsmonitor = /evil\n")
    (path / "info" / "attributes").unlink()
    with pytest.raises(WorkspaceError, match="is missing"):
        stores.open("a")
    assert stores.ensure("a", source_of(scene.root)) == store == stores.open("a")
    assert {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()} == kept


def test_processes_that_make_one_store_at_once_all_have_it(scene: Scene) -> None:
    made: list[str] = []
    begin = threading.Barrier(8)

    def ensure() -> None:
        begin.wait()
        made.append(Stores(scene.state).ensure("a", source_of(scene.root)).path)

    threads = [threading.Thread(target=ensure) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1


def test_moved_source_is_followed_and_others_stay(scene: Scene, tmp_path: Path) -> None:
    stores = Stores(tmp_path / "state")
    other = new_repository(tmp_path / "other", {"other.txt": "other\n"})
    stores.ensure("a", source_of(other))
    store = stores.ensure("a", source_of(scene.root))
    moved = scene.root.rename(tmp_path / "moved")
    stores.ensure("a", source_of(moved))
    for repository in (moved, other):
        head = git(repository, "rev-parse", "HEAD")
        assert Git().run(store.reading(), "cat-file", "-t", head) == b"commit\n"
    lines = (Path(store.path) / "objects" / "info" / "alternates").read_text().splitlines()
    assert lines == [
        "../kept",
        *(str(moved / ".git" / "objects"), "../../../../moved/.git/objects"),
        *(str(other / ".git" / "objects"), "../../../../other/.git/objects"),
    ]


@pytest.mark.parametrize("name", ["line\nend", 'quo"te', "co:lon", "#hash", os.fsdecode(b"\xff")])
def test_source_may_have_any_name(tmp_path: Path, name: str) -> None:
    repository = new_repository(tmp_path / name)
    head = commit(repository, {"a": "a\n"})
    store = Stores(tmp_path / "state").ensure("a", source_of(repository))
    assert Git().run(store.reading(), "cat-file", "-t", head) == b"commit\n"
    scene = Scene(repository)
    assert scene.stored(scene.make().store, head).keys() == {
        "README.md",
        "a",
        "src/app.py",
        "src/lib/cow.py",
    }


def test_name_of_a_store_is_that_of_the_real_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    name = store_name(str(tmp_path / "real"))
    assert (len(name), store_name(str(tmp_path / "link"))) == (16, name)
    assert store_name(str(tmp_path / "real"), "sha256") != name


def test_store_that_cannot_be_made_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file\n")
    with pytest.raises(WorkspaceError, match="cannot be made") as caught:
        Stores(tmp_path / "state").ensure("a")
    assert str(tmp_path / "state") in str(caught.value)
