"""The world that tests of the index share."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror.mirror_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A fleet in which nothing has happened yet."""
    return World(tmp_path / ".nightherd")
