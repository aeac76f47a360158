"""A daemon in the background runs nightherd's own modules, whatever agents leave in the fleet's directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_files_in_the_fleets_directory_are_not_taken_for_modules(fleet: Path) -> None:
    for name in ("click", "msgspec", "nightherd"):
        (fleet / f"{name}.py").write_text("raise SystemExit('a planted module ran')\n")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        # As an installed `nightherd` does, it does not look for modules where it is started.
        command = [sys.executable, "-P", "-m", "nightherd", *words]
        return subprocess.run(command, cwd=fleet, capture_output=True, text=True)

    started = run("start", "--detach")
    try:
        assert "a planted module ran" not in started.stderr
        assert started.returncode == 0, started.stderr
    finally:
        run("stop", "--now")
