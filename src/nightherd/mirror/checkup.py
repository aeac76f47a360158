"""Checkup of the mirror: files that are behind, or that something else has damaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from nightherd.engine.doctor import Check
from nightherd.errors import StateFileError
from nightherd.files.corrupt import keep_aside
from nightherd.files.reading import ReadFailed, ReadOk, safe_read_json, safe_read_yaml
from nightherd.mirror.fleet_state import read_fleet_state
from nightherd.mirror.layout import MirrorLayout
from nightherd.model.finding import Finding, Level
from nightherd.ports import Mirror


def mirror_checks(root: Path, now: datetime, mirror: Mirror) -> tuple[Check, Check]:
    """The checks of the readable files: the first is quick, the second reads each of them.

    What is damaged is kept aside, and all are written again.
    """

    async def mend(findings: Sequence[Finding]) -> None:
        # All are written anew, so none that is damaged may be in the way, found or not.
        paths = {finding.path for finding in (*findings, *examine_files(root)) if finding.path}
        for path in sorted(paths):
            keep_aside(Path(path), now)
        mirror.rebuild()

    title = "readable files"
    return (
        Check("mirror", title, partial(examine_state, root), mend_all=mend),
        Check(
            "mirror-files",
            f"{title}, each one",
            partial(examine_files, root),
            mend_all=mend,
            is_deep=True,
        ),
    )


def is_kept(root: Path) -> bool:
    """Whether the directory has a mirror: a fleet may be without one."""
    layout = MirrorLayout(root)
    return layout.memory.exists() or layout.state.exists()


def examine_state(root: Path) -> Iterator[Finding]:
    """What is wrong with `state.yaml`: the mirror is derived, so it is simply written again."""
    path = MirrorLayout(root).state
    if not path.exists():
        return
    try:
        read_fleet_state(path)
    except StateFileError as error:
        yield _damaged("mirror", path, error.message)


def examine_files(root: Path) -> Iterator[Finding]:
    """Files of single jobs and sessions that cannot be parsed, or say nothing."""
    layout = MirrorLayout(root)
    for path in sorted(layout.jobs.glob("job-*.yaml")):
        yield from _faults(path, safe_read_yaml(path))
    for path in sorted(layout.sessions.glob("*.json")):
        yield from _faults(path, safe_read_json(path))


def _faults(path: Path, read: ReadOk[Any] | ReadFailed) -> Iterator[Finding]:
    if isinstance(read, ReadFailed) and path.exists():
        yield _damaged("mirror-files", path, read.error.message)
    elif isinstance(read, ReadOk) and not isinstance(read.data, dict):
        yield _damaged("mirror-files", path, f"'{path}' holds no fields")


def _damaged(check: str, path: Path, message: str) -> Finding:
    return Finding(
        check=check,
        level=Level.WARNING,
        message=message,
        path=str(path),
        remedy="it is kept aside and written again",
        is_fixable=True,
    )
