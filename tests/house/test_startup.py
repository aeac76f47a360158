"""What commands that only read may not import: their start-up budget is spent on nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "anyio", "asyncio", "claude_agent_sdk", "fastapi", "hashlib", "mcp", "pydantic", "pydantic_core", "random", "rich",
    "secrets", "yaml",
}  # fmt: skip
MODULES_OF_HELP = 16
MODULES_OF_A_LIST = 56
"""Modules of ours, packages included: a list of jobs loads rows of jobs, not the model of sessions, limits and agents."""

ONE_AGENT = """\
agents:
  - name: hello
    runtime: scripted
    script:
      - say: hello
"""

LISTING = """
import runpy, sys
script, listing, *arguments = sys.argv[1:]
sys.argv = [script, *arguments]
try:
    runpy.run_path(script, run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
import json
with open(listing, "w") as file:
    json.dump(sorted(sys.modules), file)
"""


def imported_by(directory: Path, *arguments: str) -> set[str]:
    """The modules that are loaded once the command has ended well."""
    listing = directory / "modules.json"
    script = Path(sys.executable).parent / "nightherd"
    done = subprocess.run(
        [sys.executable, "-c", LISTING, script, listing, *arguments],
        cwd=directory,
        env={**os.environ, "NIGHTHERD_STATE_DIR": str(directory / ".nightherd")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = json.loads(listing.read_text())
    assert "nightherd" in names
    return set(names)


@pytest.mark.parametrize("arguments", [["--help"], ["jobs", "list", "--json"]])
def test_reading_commands_import_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / ".nightherd").mkdir()

    assert imported_by(tmp_path, *arguments) & HEAVY == set()


def test_a_list_of_runs_imports_nothing_that_runs_them(tmp_path: Path) -> None:
    (tmp_path / ".nightherd").mkdir()

    loaded = imported_by(tmp_path, "runs", "list", "--json")

    assert loaded & (HEAVY - {"hashlib"}) == set()
    assert "nightherd.engine.contexts" not in loaded


def test_help_loads_no_values_and_few_modules(tmp_path: Path) -> None:
    loaded = imported_by(tmp_path, "--help")

    assert "msgspec" not in loaded
    assert len(ours(loaded)) <= MODULES_OF_HELP


def test_a_list_of_jobs_loads_little_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text(ONE_AGENT)
    imported_by(tmp_path, "run", "hello", "-p", "hello")

    loaded = imported_by(tmp_path, "jobs", "list")

    assert len(ours(loaded)) <= MODULES_OF_A_LIST
    assert not loaded & {"nightherd.model.agents.agent", "nightherd.model.journal.event"}
    assert loaded & HEAVY == set()


def ours(loaded: set[str]) -> list[str]:
    return sorted(name for name in loaded if name.partition(".")[0] == "nightherd")


def test_commands_that_load_configuration_do_import_it(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text("agents: []\n")

    assert imported_by(tmp_path, "config", "check") >= {"pydantic", "yaml"}
