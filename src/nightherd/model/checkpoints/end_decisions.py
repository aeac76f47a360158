"""The last checkpoint of a job that ends without success, in the change that ends it.

An execution saves its own before it settles the job. A job that ends outside an execution (cancelled while it waits,
given up, ended by a repair) gets it here, from its rows. One that never began has no record to point into, and no
checkpoint.
"""

from __future__ import annotations

from datetime import datetime

from nightherd.model.checkpoints.checkpoint import Checkpoint, TriggerPoint, checkpoint_id
from nightherd.model.checkpoints.journal_checkpoints import without_removed
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.job import Execution, Job, JobStatus

POINTS = {
    JobStatus.CANCELLED: TriggerPoint.ON_CANCEL,
    JobStatus.FAILED: TriggerPoint.ON_ERROR,
}


def end_checkpoint(
    ended: Job,
    at: datetime,
    rows: Rows,
    *,
    execution: Execution | None = None,
    last_number: int = 0,
) -> tuple[Checkpoint, ...]:
    """Return the checkpoint at which `ended` stops; nothing if it is saved, not due, or the job never began.

    `execution` is the job's last one as the same change writes it. `last_number` is the highest number of a
    checkpoint in the journal, where the caller has read that.
    """
    point = POINTS.get(ended.status)
    if point is None or ended.epoch == 0:
        return ()
    following = rows.next_checkpoint_number(ended.id)
    last = rows.get(Checkpoint, checkpoint_id(ended.id, following - 1))
    is_this_execution = last is not None and last.epoch == ended.epoch
    if last is not None and is_this_execution and last.status == ended.status.value:
        return ()
    number = following
    if last is not None and is_this_execution and last.seq == ended.last_seq:
        number = last.number  # the same line: the later word counts
    elif last is not None and last.status == JobStatus.RUNNING.value:
        # Checkpoints that are only lines may follow that row, and each of them has a line of its own.
        number = max(following, last_number + 1 if last_number else ended.last_seq)
    return (
        Checkpoint(
            id=checkpoint_id(ended.id, number),
            job_id=ended.id,
            number=number,
            epoch=ended.epoch,
            seq=ended.last_seq,
            trigger=point.value,
            status=ended.status.value,
            created_at=at,
            turn=ended.turns,
            input_tokens=ended.input_tokens,
            output_tokens=ended.output_tokens,
            cache_creation_input_tokens=ended.cache_creation_input_tokens,
            cache_read_input_tokens=ended.cache_read_input_tokens,
            cost_microusd=ended.cost_microusd,
            duration_ms=_worked_ms(ended, execution, rows),
            header=_header(last),
        ),
    )


def _header(last: Checkpoint | None) -> dict[str, object]:
    """What the job's last row said: what it may use, and not what it waited for."""
    kept = without_removed(last.header) if last is not None else {}
    return {name: value for name, value in kept.items() if name != "suspension"}


def _worked_ms(job: Job, execution: Execution | None, rows: Rows) -> int:
    ids = (generate_execution_id(job.id, epoch) for epoch in range(1, job.epoch + 1))
    known = {one.epoch: one for key in ids if (one := rows.get(Execution, key)) is not None}
    if execution is not None:
        known[execution.epoch] = execution
    return sum(one.duration_ms or 0 for one in known.values())
