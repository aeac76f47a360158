"""Checkup of `threads/<job>/state.json`: files that were cut off, edited beyond their schema, or are another job's, and writes that failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from nightherd.engine.doctor.doctor import Check
from nightherd.errors import StateFileError
from nightherd.files.permission import keep_aside
from nightherd.mirror.checkup import is_kept
from nightherd.mirror.threads import COMPRESSED, PLAIN, ThreadStateFiles
from nightherd.model.checkpoints.state_document import STATUS_WORDS
from nightherd.model.doctor import Finding, Level
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.ports import Journals, StateReader
from nightherd.views.jobs.checkpoints import documented, standing
from nightherd.views.jobs.jobs import every_job

NAME = "state-files"
SUSPENDED = "suspended-state-files"
PAGE = 500


def thread_checks(
    root: Path,
    files: Callable[[], ThreadStateFiles],
    reader: StateReader,
    journals: Journals,
    now: datetime,
) -> tuple[Check, Check]:
    """The checks of these files: the first looks at suspended jobs, the second reads the file of every job.

    A file that cannot be used is kept aside; it, one that is behind and one that is missing are written again.
    `files` is called when there is one to read: the project's configuration of them may be wrong.
    """

    def examine_suspended() -> Iterator[Finding]:
        suspended = every_job(reader, JobQuery(status=JobStatus.SUSPENDED, limit=PAGE))
        jobs = [job for job in suspended if reader.list_checkpoints(job.id)]
        if not jobs or not is_kept(root):
            return
        known = files()
        for job in jobs:
            yield from behind(job, known)

    def examine() -> Iterator[Finding]:
        found = list(documents(root))
        if found:
            yield from unusable(found, files(), reader)
        ended = [job for job in with_checkpoints(reader) if job.is_terminal]
        if ended and is_kept(root):
            known = files()
            for job in ended:
                yield from behind(job, known)

    async def repair(finding: Finding) -> None:
        assert finding.path is not None  # noqa: S101 (every finding here has one)
        path = Path(finding.path)
        job_id = JobId(path.parent.name)
        document = documented(standing(reader, job_id, now=now), journals, now=now)
        known = files()
        _put_unusable_aside(path, known, now)
        known.write(job_id, document)

    return (
        Check(SUSPENDED, "state.json of suspended jobs", examine_suspended, repair=repair),
        Check(NAME, "state.json of jobs", examine, repair=repair, is_deep=True),
    )


def _put_unusable_aside(path: Path, files: ThreadStateFiles, now: datetime) -> None:
    try:
        files.read(path.parent.name)
    except StateFileError:
        if path.exists():
            keep_aside(path, now)


def with_checkpoints(reader: StateReader) -> Iterator[Job]:
    """The jobs that have checkpoints now."""
    for job_id in reader.jobs_with_checkpoints():
        job = reader.find_job(job_id) if reader.list_checkpoints(job_id) else None
        if job is not None:
            yield job


def unusable(
    paths: Iterable[Path], files: ThreadStateFiles, reader: StateReader
) -> Iterator[Finding]:
    """The files that cannot be read as any reader would."""
    for path in paths:
        job = reader.find_job(JobId(path.parent.name))
        if job is not None and job.status is JobStatus.RUNNING:
            continue  # it may be just being written
        try:
            files.read(path.parent.name)
        except StateFileError as error:
            if path.exists():
                yield damaged(path, error.message, is_known=job is not None)


def behind(job: Job, files: ThreadStateFiles) -> Iterator[Finding]:
    """The file of a job that stopped, when it is missing or shows another state: its last write failed."""
    try:
        document = files.read(job.id)
    except StateFileError:
        if files.written_at(job.id) is not None:
            return  # it is damaged, which is found elsewhere
        message = f"there is no state.json of {job.id}: it could not be written, or was deleted"
    else:
        expected = (STATUS_WORDS[job.status.value], job.turns)
        if (document.get("status"), document.get("turn_number")) == expected:
            return
        message = f"state.json of {job.id} is behind: its last write failed"
    yield Finding(
        check=SUSPENDED if job.status is JobStatus.SUSPENDED else NAME,
        level=Level.WARNING,
        message=message,
        path=str(files.directory(job.id) / PLAIN),
        job_id=job.id,
        remedy="it is written again",
        is_fixable=True,
    )


def documents(root: Path) -> Iterator[Path]:
    """The files there are, of each job the one that is read."""
    for folder in sorted((root / "threads").glob("job-*")):
        found = [folder / name for name in (COMPRESSED, PLAIN) if (folder / name).exists()]
        yield from found[:1]


def damaged(path: Path, message: str, *, is_known: bool) -> Finding:
    """A file that cannot be used."""
    return Finding(
        check=NAME,
        level=Level.WARNING,
        message=message,
        path=str(path),
        job_id=path.parent.name if is_known else None,
        remedy="it is kept aside and written again" if is_known else "there is no such job",
        is_fixable=is_known,
    )
