"""Deleting the mirror: exactly the files it derives, nothing that is only beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nightherd.files.permission import state_file_error
from nightherd.mirror.layout import MirrorLayout
from nightherd.model.ids import JOB_ID


def derived_files(layout: MirrorLayout) -> Iterator[Path]:
    """Every file of the mirror but the logs somebody asked for; journals and contexts are not among them."""
    yield from (path for path in (layout.state, layout.memory) if path.exists())
    yield from (path for path in _in(layout.jobs, "*.yaml") if JOB_ID.fullmatch(path.stem))
    yield from _in(layout.sessions, "*.json")
    for project in _in(layout.projects, "*"):
        if project.is_dir() and not project.is_symlink():
            yield from _in(project, "*.jsonl")


def output_logs(layout: MirrorLayout) -> Iterator[str]:
    """The jobs whose record somebody asked for as text."""
    for log in _in(layout.jobs, "*/output.log"):
        if JOB_ID.fullmatch(log.parent.name):
            yield log.parent.name


def wipe(layout: MirrorLayout) -> int:
    """Delete the mirror; how many files that were. The first that cannot be deleted is a `StateFileError`."""
    count = 0
    for path in list(derived_files(layout)):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise state_file_error(error, path, "delete") from error
        count += 1
    return count


def _in(directory: Path, pattern: str) -> list[Path]:
    return sorted(directory.glob(pattern)) if directory.is_dir() else []
