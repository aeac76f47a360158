"""Roles of the configuration's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty folder to put a fleet into."""
    return Folder(tmp_path)
