"""What commands that only read may not import: their start-up budget is spent on nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "anyio", "asyncio", "claude_agent_sdk", "fastapi", "mcp", "pydantic", "pydantic_core", "rich", "yaml",
}  # fmt: skip

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
    json.dump(sorted({name.partition(".")[0] for name in sys.modules}), file)
"""


def imported_by(directory: Path, *arguments: str) -> set[str]:
    """The top-level modules that are loaded once the command has ended well."""
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


def test_commands_that_load_configuration_do_import_it(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text("agents: []\n")

    assert imported_by(tmp_path, "config", "check") >= {"pydantic", "yaml"}
