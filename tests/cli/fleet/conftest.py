"""Fleets from templates; daemons that their tests started are stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.fleet.herd import Herd, MakeHerd
from components import Components

NO_DAEMON = 69


@pytest.fixture
def make_herd(tmp_path: Path, components: Components) -> Iterator[MakeHerd]:
    components.program("git")
    made: list[Herd] = []

    def make(name: str, *before: str) -> Herd:
        made.append(Herd(tmp_path, name, *before))
        return made[-1]

    yield make
    for herd in made:
        herd.shell("nightherd stop --now", codes=(0, NO_DAEMON))
