"""When `state.json` is written: after checkpoints as often as is useful, and where a job stops.

The file is derived from rows and journal. A failed write fails no job: the operator log has it, and `doctor` finds it.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio import to_thread

from nightherd.engine.contexts import Stores, ThreadFiles, WorkerContext
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus
from nightherd.model.log import LogLevel, LogLine
from nightherd.views.jobs.checkpoints import Standing, at_end_of_record, documented, standing

WRITE_EVERY_S = 1.0
WRITE_SHARE = 20
"""After a write that took so long, nothing is written for this many times as long."""


class StateFile:
    """The `state.json` of one execution's job, throttled.

    A checkpoint is written at once if the last write is long enough ago. Else it is written when the throttle ends,
    by `write_due`, which has to be called now and then; only the newest checkpoint is.
    """

    def __init__(self, job_id: JobId, context: WorkerContext) -> None:
        self._job_id = job_id
        self._context = context
        self._pending: Checkpoint | None = None
        self._due = 0.0
        self._lock = anyio.Lock()
        self._trouble: str | None = None

    @property
    def follows_checkpoints(self) -> bool:
        """Whether the project wants the file on the way too."""
        context = self._context
        return context.threads is not None and not context.persistence.performance.incremental

    @property
    def is_due(self) -> bool:
        """Whether `write_due` has something to write now."""
        has_work = self._pending is not None and not self._lock.locked()
        return has_work and self._context.clock.monotonic() >= self._due

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
            clock = self._context.clock
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
        context = self._context
        if context.threads is None:
            return
        trouble = await write_state(self._job_id, context, context.threads, place)
        if trouble is not None and trouble != self._trouble:
            log_unwritten(self._job_id, trouble, context)
        self._trouble = trouble


async def write_stopped(
    job_id: JobId,
    stores: Stores,
    threads: ThreadFiles | None,
    *,
    on_trouble: Callable[[str], None] | None = None,
) -> None:
    """Write the files of a job that no worker runs now, and of those below it if it has ended.

    `on_trouble` is called with what could not be written; without it the operator log has it.
    """
    job = stores.reader.find_job(job_id)
    if threads is None or job is None or job.status is JobStatus.RUNNING:
        return
    if stores.reader.list_checkpoints(job_id):
        trouble = await write_state(job_id, stores, threads)
        if trouble is not None and on_trouble is not None:
            on_trouble(trouble)
        elif trouble is not None:
            log_unwritten(job_id, trouble, stores)
    if job.is_terminal:
        await write_children(job_id, stores, threads, on_trouble=on_trouble)


async def write_children(
    job_id: JobId,
    stores: Stores,
    threads: ThreadFiles | None,
    *,
    on_trouble: Callable[[str], None] | None = None,
) -> None:
    """Write the files of the jobs below a job that has ended: those that waited ended with it."""
    if threads is None:
        return
    for child in stores.reader.jobs_of_parent(job_id):
        if child.is_terminal:
            await write_stopped(child.id, stores, threads, on_trouble=on_trouble)


async def write_state(
    job_id: JobId,
    stores: Stores,
    threads: ThreadFiles,
    place: Checkpoint | None = None,
) -> str | None:
    """Write the job as one document: at that checkpoint, else as it stands; what went wrong, if anything did."""
    now = stores.clock.now()

    def write(found: Standing) -> None:
        current = found if place is not None else at_end_of_record(found, stores.journals)
        threads.write(job_id, documented(current, stores.journals, now=now))

    try:
        # In a thread: the whole conversation is read.
        await to_thread.run_sync(write, standing(stores.reader, job_id, place, now=now))
    except Exception as error:  # noqa: BLE001 (the file is derived: whatever is wrong with it, the job continues)
        return f"state.json of {job_id} cannot be written: {error}"
    return None


def log_unwritten(job_id: JobId, trouble: str, context: Stores) -> None:
    """Report to the operator that the job's file is behind."""
    line = LogLine(
        at=context.clock.now(),
        level=LogLevel.WARNING,
        event="state.unwritten",
        job=job_id,
        message=trouble,
    )
    context.log.write(line)
