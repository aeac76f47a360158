"""The command, ready to be driven in a directory with a fleet or without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nightherd.wiring import runtimes
from surfaces.drivers import FLEET, Shell


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a fleet of scripted agents; the test stands in it. Nothing is installed but the core."""
    monkeypatch.setitem(runtimes.EXTRAS, "sdk", ("a_package_that_nobody_has", "claude"))
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory without a fleet; the test stands in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shell(fleet: Path) -> Iterator[Shell]:
    """The command as a process of its own, in the directory with the fleet."""
    started = Shell(fleet)
    yield started
    started.close()
