"""What tests need from the machine, and the one rule for what is not there."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

ABSENT = "missing component: "
LEFT_OUT = "starts a process; `make test` runs it"
"""Why `pytest --quick` (`quick.py`) leaves a test out."""


@dataclass(frozen=True)
class Components:
    """What a test needs from the machine. Absent, it skips the test out loud; where CI is set it fails it."""

    is_ci: bool
    is_quick: bool = False
    """Whether to leave out each test that asks for a program: it would start it."""

    def program(self, name: str) -> str:
        """The path of `name` on PATH, or the end of this test."""
        self._leave_out()
        found = shutil.which(name)
        return found if found is not None else self.absent(name, f"install {name}")

    def claude(self) -> Path:
        """The real `claude`, inside the package that brings it, or the end of this test."""
        self._leave_out()
        found = importlib.util.find_spec("claude_agent_sdk")
        places = found.submodule_search_locations if found is not None else None
        programs = [Path(place) / "_bundled" / "claude" for place in places or []]
        program = next((one for one in programs if one.exists()), None)
        return program or self.absent("claude", "make environment")

    def claude_version(self, version: str) -> Path:
        """A `claude` of that version, downloaded by `scripts/claude-versions`, or the end of this test."""
        self._leave_out()
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        program = Path(home) / "nightherd" / "claude" / version / "claude"
        if not program.exists():
            self.absent(f"claude {version}", f"scripts/claude-versions {version}")
        return program

    def absent(self, what: str, remedy: str) -> NoReturn:
        """Ends this test because `what` is not here and cannot be made."""
        text = f"{ABSENT}{what} ({remedy})"
        if self.is_ci:
            pytest.fail(text, pytrace=False)
        pytest.skip(text)

    def _leave_out(self) -> None:
        if self.is_quick:
            pytest.skip(LEFT_OUT)
