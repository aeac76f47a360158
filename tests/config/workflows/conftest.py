"""Roles of the tests of workflow files."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.workflows.workflow_folder import WorkflowFolder


@pytest.fixture
def flows(tmp_path: Path) -> WorkflowFolder:
    """An empty folder to put workflows into."""
    return WorkflowFolder(tmp_path)
