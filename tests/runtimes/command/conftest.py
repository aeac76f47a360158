"""Directories to run commands in."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtimes.command.command_stage import CommandJobs, CommandStage


@pytest.fixture
def commands(tmp_path: Path) -> CommandStage:
    """The runtime alone, in an empty directory."""
    directory = tmp_path / "workspace"
    directory.mkdir()
    return CommandStage(directory)


@pytest.fixture
def jobs(tmp_path: Path) -> CommandJobs:
    """Jobs of a state directory."""
    return CommandJobs(tmp_path)
