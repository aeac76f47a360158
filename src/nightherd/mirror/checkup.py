"""Checkup of the mirror: files that are behind, or that something else has damaged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from nightherd.engine.doctor import Check
from nightherd.errors import StateFileError
from nightherd.files.corrupt import keep_aside
from nightherd.mirror.fleet_state import read_fleet_state
from nightherd.mirror.layout import MirrorLayout
from nightherd.model.finding import Finding, Level
from nightherd.ports import Mirror


def mirror_check(root: Path, now: datetime, mirror: Mirror) -> Check:
    """The check of the readable files, and how they are mended: what is damaged is kept aside."""

    async def mend(finding: Finding) -> None:
        if finding.path is not None:
            keep_aside(Path(finding.path), now)
        mirror.rebuild()

    return Check("mirror", "readable files", partial(examine_mirror, root), mend)


def is_kept(root: Path) -> bool:
    """Whether the directory has a mirror: a fleet may be without one."""
    layout = MirrorLayout(root)
    return layout.memory.exists() or layout.state.exists()


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
