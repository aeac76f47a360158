"""Checkup of the mirror: files that are behind, or that something else has damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nightherd.errors import StateFileError
from nightherd.mirror.fleet_state import read_fleet_state
from nightherd.mirror.layout import MirrorLayout
from nightherd.model.finding import Finding, Level


def examine_mirror(root: Path) -> Iterator[Finding]:
    """What is wrong with `state.yaml`: the mirror is derived, so it is simply written again."""
    path = MirrorLayout(root).state
    if not path.exists():
        return
    try:
        read_fleet_state(path)
    except StateFileError as error:
        yield Finding(
            check="mirror",
            level=Level.WARNING,
            message=error.message,
            path=str(path),
            remedy="it is kept aside and written again",
            is_fixable=True,
        )
