"""Looking up in the change feed what the mirror has forgotten: it is all there."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from nightherd.errors import StateFileError
from nightherd.mirror.images import (
    EXECUTIONS,
    JOBS,
    TEXTS,
    ExecutionImage,
    Image,
    JobImage,
    TextsImage,
    read_image,
)
from nightherd.ports import ChangeFeed, LedgerEntry

NEAR = 1_000
"""Changes that are read over rather than looked up anew."""


class Recalled(msgspec.Struct):
    """What was found."""

    jobs: dict[str, JobImage] = msgspec.field(default_factory=dict)
    texts: dict[str, TextsImage] = msgspec.field(default_factory=dict)
    session_jobs: dict[str, list[str]] = msgspec.field(default_factory=dict)
    worked_ms: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """How long each execution of a job took, by job and epoch."""


def recall_at(feed: ChangeFeed, changes: Collection[int]) -> Recalled:
    """The jobs and texts that these changes wrote."""
    found = Recalled()
    for entry in _entries(feed, sorted(set(changes))):
        for image in _images(entry):
            match image:
                case JobImage():
                    found.jobs[image.id] = image
                case TextsImage():
                    found.texts[image.job_id] = image
                case _:
                    continue
    return found


def recall_all(
    feed: ChangeFeed, *, job_ids: Collection[str], session_ids: Collection[str], until: int
) -> Recalled:
    """Rows and texts of these jobs and the jobs of these sessions, as of `until`; reads the whole feed."""
    found = Recalled(session_jobs={session_id: [] for session_id in session_ids})
    for entry in feed.read():
        if entry.change > until:
            break
        for image in _images(entry):
            match image:
                case TextsImage(job_id=job_id) if job_id in job_ids:
                    found.texts[job_id] = image
                case JobImage(id=job_id, session_id=session_id):
                    if job_id in job_ids:
                        found.jobs[job_id] = image
                    jobs = found.session_jobs.get(session_id or "")
                    if jobs is not None and job_id not in jobs:
                        jobs.append(job_id)
                case ExecutionImage(job_id=job_id, duration_ms=int() as took) if job_id in job_ids:
                    found.worked_ms.setdefault(job_id, {})[str(image.epoch)] = took
                case _:
                    continue
    return found


def _images(entry: LedgerEntry) -> Iterator[Image]:
    for table, row in entry.rows:
        if table not in (JOBS, TEXTS, EXECUTIONS):
            continue
        try:
            image = read_image(table, row)
        except StateFileError:
            continue  # said once, when its change was mirrored
        if image is not None:
            yield image


def _entries(feed: ChangeFeed, changes: list[int]) -> Iterator[LedgerEntry]:
    reading: Iterator[LedgerEntry] | None = None
    at = 0
    for change in changes:
        if reading is None or change - at > NEAR:
            reading = feed.read(after=change - 1)
        for entry in reading:
            at = entry.change
            if at >= change:
                if at == change:
                    yield entry
                break
