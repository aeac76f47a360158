"""Checkup of `threads/<job>/state.json`: files that were cut off, edited beyond their schema, or are another job's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from nightherd.engine.doctor import Check
from nightherd.errors import StateFileError
from nightherd.files.corrupt import keep_aside
from nightherd.mirror.threads import COMPRESSED, PLAIN, ThreadStateFiles
from nightherd.model.finding import Finding, Level
from nightherd.model.ids import JobId
from nightherd.model.job import JobStatus
from nightherd.ports import Journals, StateReader
from nightherd.views.checkpoints import documented, standing

NAME = "state-files"


def thread_check(
    root: Path,
    files: Callable[[], ThreadStateFiles],
    reader: StateReader,
    journals: Journals,
    now: datetime,
) -> Check:
    """Every file is read as any reader would; one that is refused is kept aside and written again.

    `files` is asked when there is one to read: how they look is for the project to say, perhaps wrongly.
    """

    def examine() -> Iterator[Finding]:
        found = list(documents(root))
        if not found:
            return
        known = files()
        for path in found:
            job = reader.find_job(JobId(path.parent.name))
            if job is not None and job.status is JobStatus.RUNNING:
                continue  # it may be just being written
            try:
                known.read(path.parent.name)
            except StateFileError as error:
                if path.exists():
                    yield damaged(path, error.message, is_known=job is not None)

    async def mend(finding: Finding) -> None:
        assert finding.path is not None  # noqa: S101 (every finding here has one)
        path = Path(finding.path)
        job_id = JobId(path.parent.name)
        document = documented(standing(reader, job_id, now=now), journals, now=now)
        keep_aside(path, now)
        files().write(job_id, document)

    return Check(NAME, "state.json of jobs", examine, mend=mend, is_deep=True)


def documents(root: Path) -> Iterator[Path]:
    """The files there are, of each job the one that is read."""
    for folder in sorted((root / "threads").glob("job-*")):
        found = [folder / name for name in (COMPRESSED, PLAIN) if (folder / name).exists()]
        yield from found[:1]


def damaged(path: Path, message: str, *, is_known: bool) -> Finding:
    """A file that nobody can use."""
    return Finding(
        check=NAME,
        level=Level.WARNING,
        message=message,
        path=str(path),
        job_id=path.parent.name if is_known else None,
        remedy="it is kept aside and written again" if is_known else "there is no such job",
        is_fixable=is_known,
    )
