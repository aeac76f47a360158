"""Checkpoints: bookmarks that get rows, and bookmarks that are taken away."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, SaveCheckpoint, Why
from nightherd.model.checkpoints.checkpoint import (
    HEADER_LIMIT,
    Checkpoint,
    RemoveCheckpoints,
    checkpoint_id,
)
from nightherd.model.checkpoints.journal_checkpoints import firsts, removed, with_removed
from nightherd.model.decisions.around import missing, owned
from nightherd.model.decisions.rows import Rows
from nightherd.model.jobs.job import Job


def save_checkpoint(change: SaveCheckpoint, rows: Rows) -> Answer:
    """The job's next bookmark, if this execution still owns the job and the header is bounded."""
    checkpoint = change.checkpoint
    job = owned(checkpoint.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    size = _size(checkpoint.header)
    if size > HEADER_LIMIT:
        return _too_large(size, job)
    following = rows.next_checkpoint_number(job.id)
    last = rows.get(Checkpoint, checkpoint_id(job.id, following - 1))
    if last is not None and (last.seq, last.epoch) == (checkpoint.seq, job.epoch):
        number = last.number  # the same line: the later word counts
    else:
        number = max(following, checkpoint.number)  # those that are lines only have numbers too
    saved = replace(checkpoint, id=checkpoint_id(job.id, number), number=number, epoch=job.epoch)
    return Applied(rows=(saved,), job=job)


def remove_checkpoints(change: RemoveCheckpoints, rows: Rows) -> Answer:
    """The bookmarks, taken away; those that are gone already are left as they are."""
    job = rows.get(Job, change.job_id)
    if job is None:
        return missing(change.job_id)
    last = max([rows.next_checkpoint_number(job.id) - 1, *change.kept])
    if not job.is_terminal and max(change.numbers, default=0) >= last:
        refusal = f"job {job.id} can be resumed from its last checkpoint"
        return Refused(why=Why.STATUS, message=refusal, job=job)
    written = tuple(_written(change, rows))
    size = max((_size(one.header) for one in written), default=0)
    return _too_large(size, job) if size > HEADER_LIMIT else Applied(rows=written, job=job)


def _written(change: RemoveCheckpoints, rows: Rows) -> Iterator[Checkpoint]:
    """Rows that go, and those that speak for lines that go while others of theirs stay."""
    found = rows.checkpoints_of(change.job_id)
    speaking = firsts(found)
    numbers = sorted(one.number for one in speaking.values())
    for row in found:
        if speaking[row.epoch] is not row:
            if row.number in change.numbers:
                yield replace(row, removed_at=change.at)
            continue
        until = next((number for number in numbers if number > row.number), None)
        going = {one for one in change.numbers if _is_in(one, row.number, until)}
        if not going - removed(row):
            continue
        if any(_is_in(one, row.number, until) for one in change.kept):
            yield with_removed(row, going)
        else:
            yield replace(row, removed_at=change.at)


def _is_in(number: int, first: int, until: int | None) -> bool:
    return first <= number and (until is None or number < until)


def _size(header: Mapping[str, Any]) -> int:
    return len(json.dumps(header).encode())


def _too_large(size: int, job: Job) -> Refused:
    found = f"a checkpoint header of {size} bytes; at most {HEADER_LIMIT} are allowed"
    return Refused(why=Why.TOO_LARGE, message=found, job=job)
