"""What tests of workspaces share."""

from __future__ import annotations

from pathlib import Path

import pytest

from workspaces.scene import Scene, new_repository


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A repository with three files and a state directory in it."""
    return Scene(new_repository(tmp_path / "repo"))
