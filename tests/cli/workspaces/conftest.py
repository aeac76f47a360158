"""What tests of workspace commands share: a project under git, and the test stands in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from components import Components
from workspace_fleet import make_project


@pytest.fixture
def project(fleet: Path, components: Components) -> Path:
    """A repository with agents that work in workspaces."""
    components.program("git")
    return make_project(fleet)
