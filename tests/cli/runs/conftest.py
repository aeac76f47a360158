"""A fleet with workflows, and the command that starts runs of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.runs.flows import FLOWS


@pytest.fixture
def flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a fleet that has workflows; the test stands in it."""
    (tmp_path / "nightherd.yaml").write_text(FLOWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path
