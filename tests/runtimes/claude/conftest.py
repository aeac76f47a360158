"""The real `claude`, from the package that brings it, and a turn at one of two slots to run it."""

from __future__ import annotations

import fcntl
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from components import Components
from runtimes.claude.claude_stage import ClaudeStage

SLOTS = 2
"""How many tests run `claude` at once, whatever the number of cores: more of them are slower than these."""


@pytest.fixture(scope="session")
def bundled_claude(components: Components) -> Path:
    """The program inside the installed package, or the end of this test."""
    found = importlib.util.find_spec("claude_agent_sdk")
    places = found.submodule_search_locations if found is not None else None
    programs = [Path(place) / "_bundled" / "claude" for place in places or []]
    program = next((one for one in programs if one.exists()), None)
    return program or components.absent("claude", "make environment")


@pytest.fixture
def slot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One of the slots, until the test is over."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    shared = tmp_path_factory.getbasetemp().parent
    with (shared / f"claude-slot-{int(worker) % SLOTS}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def stage(tmp_path: Path, bundled_claude: Path, slot: None) -> ClaudeStage:
    """An empty place to run the real `claude` in."""
    for name in ("home", "tmp", "work", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "claude").symlink_to(bundled_claude)
    return ClaudeStage(root=tmp_path, programs=tmp_path / "bin")
