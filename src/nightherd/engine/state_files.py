"""When `state.json` is written: after checkpoints as often as is useful, and where a job stops.

The file is derived from rows and journal. A failed write fails no job: the operator log has it, and `doctor` finds it.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio import to_thread

from nightherd.engine.record import Record
from nightherd.engine.workshop import ThreadFiles, Workshop
from nightherd.model.checkpoint import Checkpoint
from nightherd.model.ids import JobId
from nightherd.model.job import JobStatus
from nightherd.model.log import LogLevel, LogLine
from nightherd.views.checkpoints import Standing, at_end_of_record, documented, standing

WRITE_EVERY_S = 1.0
WRITE_SHARE = 20
"""After a write that took so long, nothing is written for this many times as long."""


class StateFile:
    """The `state.json` of one execution's job, throttled.

    A checkpoint is written at once if the last write is long enough ago. Else it is written when the throttle ends,
    by `write_due`, which somebody has to call now and then; only the newest checkpoint is.
    """

    def __init__(self, job_id: JobId, workshop: Workshop) -> None:
        self._job_id = job_id
        self._workshop = workshop
        self._pending: Checkpoint | None = None
        self._due = 0.0
        self._lock = anyio.Lock()
        self._trouble: str | None = None

    @property
    def follows_checkpoints(self) -> bool:
        """Whether the project wants the file on the way too."""
        workshop = self._workshop
        return workshop.threads is not None and not workshop.persistence.performance.incremental

    @property
    def is_due(self) -> bool:
        """Whether `write_due` has something to write now."""
        has_work = self._pending is not None and not self._lock.locked()
        return has_work and self._workshop.clock.monotonic() >= self._due

    async def follow(self, checkpoint: Checkpoint) -> None:
        """Bring the file up to `checkpoint`, now or when the throttle ends."""
        self._pending = checkpoint
        await self.write_due()

    async def write_due(self) -> None:
        """Write the newest checkpoint if it is time."""
        if not self.is_due:
            return
        async with self._lock:
            checkpoint, self._pending = self._pending, None
            clock = self._workshop.clock
            begun = clock.monotonic()
            await self._write(checkpoint)
            ended = clock.monotonic()
            self._due = ended + max(WRITE_EVERY_S, WRITE_SHARE * (ended - begun))

    async def write_end(self) -> None:
        """Write the job as its row says it now: this execution writes nothing after that."""
        self._pending = None
        async with self._lock:
            await self._write(None)

    async def _write(self, place: Checkpoint | None) -> None:
        workshop = self._workshop
        if workshop.threads is None:
            return
        trouble = await write_state(self._job_id, workshop, workshop.threads, place)
        if trouble is not None and trouble != self._trouble:
            log_unwritten(self._job_id, trouble, workshop)
        self._trouble = trouble


async def write_stopped(
    job_id: JobId,
    room: Workshop | Record,
    threads: ThreadFiles | None,
    *,
    on_trouble: Callable[[str], None] | None = None,
) -> None:
    """Write the files of a job that no worker runs now, and of those below it if it has ended.

    `on_trouble` is told what could not be written; without it the operator log of a workshop has it.
    """
    job = room.reader.find_job(job_id)
    if threads is None or job is None or job.status is JobStatus.RUNNING:
        return
    if room.reader.list_checkpoints(job_id):
        trouble = await write_state(job_id, room, threads)
        if trouble is not None and on_trouble is not None:
            on_trouble(trouble)
        elif trouble is not None and isinstance(room, Workshop):
            log_unwritten(job_id, trouble, room)
    if job.is_terminal:
        await write_children(job_id, room, threads, on_trouble=on_trouble)


async def write_children(
    job_id: JobId,
    room: Workshop | Record,
    threads: ThreadFiles | None,
    *,
    on_trouble: Callable[[str], None] | None = None,
) -> None:
    """Write the files of the jobs below a job that has ended: those that waited ended with it."""
    if threads is None:
        return
    for child in room.reader.jobs_of_parent(job_id):
        if child.is_terminal:
            await write_stopped(child.id, room, threads, on_trouble=on_trouble)


async def write_state(
    job_id: JobId,
    room: Workshop | Record,
    threads: ThreadFiles,
    place: Checkpoint | None = None,
) -> str | None:
    """Write the job as one document: at that checkpoint, else as it stands; what went wrong, if anything did."""
    now = room.clock.now()

    def write(found: Standing) -> None:
        current = found if place is not None else at_end_of_record(found, room.journals)
        threads.write(job_id, documented(current, room.journals, now=now))

    try:
        # In a thread: the whole conversation is read.
        await to_thread.run_sync(write, standing(room.reader, job_id, place, now=now))
    except Exception as error:  # noqa: BLE001 (the file is derived: whatever is wrong with it, the job goes on)
        return f"state.json of {job_id} cannot be written: {error}"
    return None


def log_unwritten(job_id: JobId, trouble: str, workshop: Workshop) -> None:
    """Tell the operator that the job's file is behind."""
    line = LogLine(
        at=workshop.clock.now(),
        level=LogLevel.WARNING,
        event="state.unwritten",
        job=job_id,
        message=trouble,
    )
    workshop.log.write(line)
