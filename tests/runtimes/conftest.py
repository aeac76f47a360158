"""The stage that tests of runtimes and tools play on."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.place import HOST, Place
from runtimes.stage import PLACES, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """An empty working directory to run in."""
    return _stage(tmp_path, HOST)


@pytest.fixture(params=PLACES)
def stage_anywhere(tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    """The stage for tools on this machine, and for tools in what they take for a container."""
    return _stage(tmp_path, PLACES[request.param])


def _stage(tmp_path: Path, place: Place) -> Stage:
    directory = tmp_path / "workspace"
    directory.mkdir()
    return Stage(directory, keepers=Keepers(place=place))
