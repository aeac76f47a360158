"""What tests of the doctor share: a fleet, its command, and the state directory to be examined."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.doctor.ward import Ward
from surfaces.drivers import FLEET, Cli


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a fleet of scripted agents; the test stands in it."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ward(fleet: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ward:
    """The state directory beside the fleet file, and the command to treat it with."""
    return Ward(fleet / ".nightherd", Cli(monkeypatch, capsys))


@pytest.fixture
def used(ward: Ward) -> Ward:
    """A state directory in which a job has succeeded and one has failed."""
    ward.run("hello")
    ward.run("failing")
    return ward
