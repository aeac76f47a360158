"""What tests of state share: a state directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.state.directory import StateDirectory, init_state_directory


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    """A new state directory."""
    return init_state_directory(tmp_path / ".nightherd")
