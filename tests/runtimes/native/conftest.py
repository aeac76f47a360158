"""The stage that tests of the native runtime play on."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtimes.native.native_stage import NativeStage


@pytest.fixture
def stage(tmp_path: Path) -> NativeStage:
    """An empty working directory to run in."""
    directory = tmp_path / "workspace"
    directory.mkdir()
    return NativeStage(directory)
