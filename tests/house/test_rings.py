"""The rings bite: the contracts hold as the package stands, and break for what they are there to forbid."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def package(repository: Path, tmp_path: Path) -> Path:
    """A copy of the package beside a copy of its contracts."""
    shutil.copy(repository / "pyproject.toml", tmp_path)
    no_caches = shutil.ignore_patterns("__pycache__")
    return Path(
        shutil.copytree(repository / "src/nightherd", tmp_path / "src/nightherd", ignore=no_caches)
    )


def lint(package: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", "--no-logo"],
        cwd=package.parent.parent,
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
    )


def test_contracts_are_kept_by_the_package_as_it_stands(package: Path) -> None:
    done = lint(package)

    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout


CHEATS = (
    ("model", "import sqlite3", "The model does no I/O"),
    ("model", "import time", "The model does no I/O"),
    ("model", "from nightherd import engine", "Imports point inward"),
    ("engine", "from nightherd import state", "Imports point inward"),
    ("engine", "import apsw", "Drivers stay in their rooms"),
    ("state", "from nightherd import journal", "Imports point inward"),
    ("runtimes", "import yaml", "YAML stays at the edge"),
    ("runtimes.tools", "import pydantic", "pydantic stays at the edge"),
    ("cli", "from nightherd import runtimes", "Surfaces reach adapters"),
    ("web", "from nightherd import state", "Surfaces reach adapters"),
    ("engine", "import fastapi", "Servers stay with the API and the daemon"),
    ("wiring", "import aiodocker", "The Docker Engine API stays with containers"),
    ("views", "import click", "Only the command line talks to people"),
)
"""A room, an import that does not belong there, and the contract that it breaks."""


def test_imports_that_point_the_wrong_way_break_their_contracts(package: Path) -> None:
    for number, (room, line, _) in enumerate(CHEATS):
        path = package / room.replace(".", "/") / f"cheat_{number}.py"
        path.write_text(f'"""A file that is not allowed."""\n\n{line}\n')

    done = lint(package)

    assert done.returncode != 0
    reports = reported(done.stdout)
    for number, (room, line, contract) in enumerate(CHEATS):
        imported = line.removeprefix("from ").replace(" import ", ".").removeprefix("import ")
        broken = [text for name, text in reports.items() if contract in name]
        chain = f"nightherd.{room}.cheat_{number} -> {imported} (l.3)"
        assert any(chain in text for text in broken), (chain, contract, done.stdout)


def reported(output: str) -> dict[str, str]:
    """What is wrong, by the name of the contract that is broken."""
    _, _, details = output.partition("Broken contracts\n")
    names_and_texts = re.split(r"^(\S.*)\n-+$", details, flags=re.MULTILINE)[1:]
    return dict(zip(names_and_texts[::2], names_and_texts[1::2], strict=True))


def test_new_folder_without_a_ring_breaks_the_contracts(package: Path) -> None:
    (package / "attic").mkdir()
    (package / "attic/__init__.py").write_text('"""A room nobody has placed."""\n')

    done = lint(package)

    assert done.returncode != 0
    assert "not listed as layers" in done.stdout
    assert "nightherd.attic" in done.stdout


def test_cycle_between_rooms_breaks_the_contracts(package: Path) -> None:
    (package / "ports/cheat.py").write_text(
        '"""Half of a cycle."""\n\nfrom nightherd import engine\n'
    )

    done = lint(package)

    assert done.returncode != 0
    assert "No cycles are allowed in nightherd" in done.stdout


def test_no_modules_import_each_other(repository: Path) -> None:
    house = runpy.run_path(str(repository / "scripts/house"))

    assert house["cycles"](house["import_graph"]()) == []


def test_modules_that_import_each_other_are_found(repository: Path, package: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        (package / "model" / f"{name}.py").write_text(
            f'"""Half of a cycle."""\n\nfrom nightherd.model import {other}\n'
        )
    house = runpy.run_path(str(repository / "scripts/house"))

    assert house["cycles"](house["import_graph"](package.parent)) == [
        ["nightherd.model.one", "nightherd.model.two"]
    ]
