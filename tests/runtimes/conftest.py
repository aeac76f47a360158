"""The stage that tests of runtimes and tools play on."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtimes.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """An empty working directory to run in."""
    directory = tmp_path / "workspace"
    directory.mkdir()
    return Stage(directory)
