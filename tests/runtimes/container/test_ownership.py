"""Giving directories to the user of a container: with all that is in them, and nothing that a link in them names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components import Components
from nightherd.model.containers.user import Ids
from nightherd.runtimes.container.ownership import give_tree
from nightherd.runtimes.container.place import ContainerPlace

AGENT = Ids(1000, 1000)


@pytest.fixture
def tree(tmp_path: Path, components: Components) -> Path:
    """A directory with a file, and with links to what is not in it."""
    if os.geteuid() != 0:
        components.absent("the right to give files away", "run the tests as root")
    outside, top = tmp_path / "outside", tmp_path / "top"
    (outside / "deep").mkdir(parents=True)
    (outside / "key").write_text("of the machine")
    (top / "in").mkdir(parents=True)
    (top / "in" / "file").touch()
    (top / "directory").symlink_to(outside)
    (top / "in" / "link").symlink_to(outside / "key")
    return top


def owners(top: Path) -> set[int]:
    return {path.lstat().st_uid for path in (top, *top.rglob("*"))}


def test_all_that_is_in_a_directory_is_given_and_no_link_followed(tree: Path) -> None:
    give_tree(tree, AGENT)

    assert owners(tree) == {AGENT.uid}
    assert owners(tree.parent / "outside") == {0}


def test_what_was_made_since_is_given_too(tree: Path) -> None:
    give_tree(tree, AGENT)
    (tree / "in" / "made").touch()
    give_tree(tree, AGENT)

    assert owners(tree) == {AGENT.uid}


@pytest.mark.parametrize("name", ["directory", "in/link"])
def test_link_is_given_and_not_what_it_leads_to(tree: Path, name: str) -> None:
    ContainerPlace(directory=tree, init_pid=1, owner=AGENT).give(tree / name)

    assert owners(tree.parent / "outside") == {0}
    assert (tree / name).lstat().st_uid == AGENT.uid
