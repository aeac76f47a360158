"""Checkpoints and adopted rows."""

from __future__ import annotations

import json
from dataclasses import replace

from nightherd.model.change import (
    AdoptRows,
    AdoptTurns,
    Answer,
    Applied,
    CorrectJob,
    ForkSession,
    RefreshAdopted,
    Refused,
    Row,
    SaveCheckpoint,
    Why,
)
from nightherd.model.checkpoint import (
    HEADER_LIMIT,
    Checkpoint,
    RemoveCheckpoints,
    checkpoint_id,
)
from nightherd.model.decisions.around import owned
from nightherd.model.decisions.rows import Rows
from nightherd.model.decisions.sessions import fork
from nightherd.model.job import Job
from nightherd.model.session import Session, SessionStatus


def save_checkpoint(change: SaveCheckpoint, rows: Rows) -> Answer:
    """The job's next bookmark, if this execution still owns the job and the header is bounded."""
    checkpoint = change.checkpoint
    job = owned(checkpoint.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    size = len(json.dumps(checkpoint.header).encode())
    if size > HEADER_LIMIT:
        found = f"a checkpoint header of {size} bytes; at most {HEADER_LIMIT} are allowed"
        return Refused(why=Why.TOO_LARGE, message=found, job=job)
    number = rows.next_checkpoint_number(job.id)
    last = rows.get(Checkpoint, checkpoint_id(job.id, number - 1))
    if last is not None and (last.seq, last.epoch) == (checkpoint.seq, job.epoch):
        number = last.number  # the same line: the later word counts
    saved = replace(checkpoint, id=checkpoint_id(job.id, number), number=number, epoch=job.epoch)
    return Applied(rows=(saved,), job=job)


def remove_checkpoints(change: RemoveCheckpoints, rows: Rows) -> Answer:
    """The bookmarks, taken away; those that are gone already are left as they are."""
    job = rows.get(Job, change.job_id)
    if job is None:
        return Refused(why=Why.MISSING, message=f"there is no job {change.job_id}")
    last = rows.next_checkpoint_number(job.id) - 1
    if last in change.numbers and not job.is_terminal:
        refusal = f"job {job.id} may go on from its last checkpoint"
        return Refused(why=Why.STATUS, message=refusal, job=job)
    found = [rows.get(Checkpoint, checkpoint_id(job.id, number)) for number in change.numbers]
    there = [one for one in found if one is not None and one.removed_at is None]
    return Applied(rows=tuple(replace(one, removed_at=change.at) for one in there), job=job)


def correct(change: CorrectJob, rows: Rows) -> Answer:
    """The job's row as its journal has it; epochs only grow, and what has ended stays ended."""
    found = rows.get(Job, change.expected.id)
    if found is None:
        return Refused(why=Why.MISSING, message=f"there is no job {change.expected.id}")
    if found != change.expected:
        return Refused(why=Why.STATUS, message=f"job {found.id} moved meanwhile", job=found)
    if change.job.epoch < found.epoch or (found.is_terminal and change.job.status != found.status):
        refusal = f"job {found.id} is {found.status} at epoch {found.epoch}"
        return Refused(why=Why.STATUS, message=refusal, job=found)
    return Applied(rows=(change.job,), job=change.job)


def adopt(change: AdoptRows, rows: Rows) -> Answer:
    """The rows that were not known yet, jobs and sessions numbered in the order given."""
    written: list[Row] = []
    next_job, next_session = rows.next_job_number(), rows.next_session_number()
    for row in change.rows:
        if rows.get(type(row), key_of(row)) is not None:
            continue
        if isinstance(row, Job):
            written.append(replace(row, number=next_job))
            next_job += 1
        elif isinstance(row, Session):
            written.append(replace(row, number=next_session))
            next_session += 1
        else:
            written.append(row)
    return Applied(rows=tuple(written))


def refresh(change: RefreshAdopted, rows: Rows) -> Answer:
    """The session as its source has it now; refused once a job of ours has gone on from it."""
    found = rows.get(Session, change.session.id)
    if found is None:
        return Refused(why=Why.MISSING, message=f"there is no session {change.session.id}")
    is_untouched = found.job_count == change.known_jobs and found.status is SessionStatus.PAUSED
    if found.imported_from is None or not is_untouched:
        return Refused(why=Why.STATUS, message=f"session {found.id} has jobs of its own")
    return Applied(rows=(replace(change.session, number=found.number, rank=found.rank),))


def adopt_turns(change: AdoptTurns, rows: Rows) -> Answer:
    """A job that is over, and its session with what was said in it; refused when the session has moved on."""
    session: Row = change.session
    if change.expected is None:
        branch = fork(ForkSession(session=change.session), rows)
        if isinstance(branch, Refused):
            return branch
        (session,) = branch.rows
    else:
        found = rows.get(Session, change.session.id)
        if found is None:
            return Refused(why=Why.MISSING, message=f"there is no session {change.session.id}")
        if found.status is SessionStatus.ACTIVE:
            return Refused(why=Why.SESSION_BUSY, message=f"a job is at work in session {found.id}")
        if found != change.expected:
            return Refused(why=Why.STALE, message=f"session {found.id} has moved on meanwhile")
    adopted = adopt(AdoptRows(rows=change.rows, source=""), rows)
    written = adopted.rows if isinstance(adopted, Applied) else ()
    job = next((row for row in written if isinstance(row, Job)), None)
    if job is None:
        return Refused(why=Why.ID_TAKEN, message="there is a job of that id already")
    return Applied(rows=(*written, session), job=job)


def key_of(row: Row) -> str:
    """The row's key: its first field."""
    return str(getattr(row, next(iter(row.__dataclass_fields__))))
