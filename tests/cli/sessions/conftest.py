"""The command, and a fleet whose agents remember."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.sessions.ranch import FLEET, Ranch
from surfaces.drivers import Cli


@pytest.fixture
def ranch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Ranch:
    """A directory with the fleet; the test stands in it."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return Ranch(tmp_path, cli)
