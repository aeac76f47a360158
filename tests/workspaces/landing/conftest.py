"""What tests of landings share."""

from __future__ import annotations

from pathlib import Path

import pytest

from workspaces.landing.landing_ground import Ground, lay


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A repository with `main` checked out, and an empty fleet beside it; the user's git knows nobody."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return lay(tmp_path)
