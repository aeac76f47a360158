"""Finding the fleet file: upward, by name, without the weight of YAML or pydantic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from config.folder import Folder
from nightherd.config.discovery import find_fleet_file
from nightherd.errors import ConfigNotFoundError
from nightherd.next_step import Action, NextStep
from nightherd.wiring.fleets import check_fleet


def test_fleet_file_is_found_upward_from_a_directory_below(folder: Folder) -> None:
    file = folder.write("nightherd.yaml", "agents: []\n")
    below = folder.root / "a" / "b"
    below.mkdir(parents=True)

    assert find_fleet_file(below) == file


def test_the_nearest_fleet_file_wins(folder: Folder) -> None:
    folder.write("nightherd.yaml", "agents: []\n")
    near = folder.write("a/nightherd.yml", "agents: []\n")

    assert find_fleet_file(folder.root / "a") == near


def test_yaml_wins_over_yml_in_one_directory(folder: Folder) -> None:
    folder.write("nightherd.yml", "agents: []\n")
    file = folder.write("nightherd.yaml", "agents: []\n")

    assert find_fleet_file(folder.root) == file


def test_a_directory_called_like_a_fleet_file_is_passed_over(folder: Folder) -> None:
    (folder.root / "nightherd.yaml").mkdir()
    file = folder.write("nightherd.yml", "agents: []\n")

    assert find_fleet_file(folder.root) == file


def test_a_directory_may_be_given_for_the_file(folder: Folder) -> None:
    folder.fleet("agents: [{name: a}]\n")

    checked = check_fleet(folder.root, environ={}, cwd=Path("/"))

    assert checked.loaded is not None
    assert list(checked.loaded.fleet.agents) == ["a"]


def test_a_relative_path_counts_from_the_working_directory_given(folder: Folder) -> None:
    folder.write("deep/nightherd.yaml", "agents: [{name: a}]\n")

    checked = check_fleet("deep/nightherd.yaml", environ={}, cwd=folder.root)

    assert checked.loaded is not None


def test_no_fleet_file_anywhere_says_how_to_make_one(tmp_path: Path) -> None:
    assert find_fleet_file(tmp_path) is None

    with pytest.raises(ConfigNotFoundError) as caught:
        check_fleet(tmp_path, environ={}, cwd=tmp_path)

    assert caught.value.exit_code == 78
    assert caught.value.next_step == NextStep(Action.CREATE_FLEET)


def test_discovery_imports_neither_yaml_nor_pydantic() -> None:
    code = (
        "import sys, nightherd.config.discovery\n"
        "print([name for name in ('yaml', 'pydantic', 'msgspec') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
