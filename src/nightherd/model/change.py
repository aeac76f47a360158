"""Change: one state change as a value, and what applying it came to.

A change says what it wants and what it expects to find. `model/decide.py` decides it against the rows as
they are; a store carries the decision out in one transaction. Two words answer: `Applied` or `Refused`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nightherd.model.execution import Execution
from nightherd.model.ids import JobId, WorkerId
from nightherd.model.job import Job, JobTexts
from nightherd.model.outcome import Outcome
from nightherd.model.session import Session
from nightherd.model.usage import Totals

Row = Job | JobTexts | Execution | Session
"""One row of state. Every field is a column; the first is the primary key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitJob:
    """Record a new job, before anything runs.

    `session` is what the job would begin; when its key has a current session that fits, the job joins
    that one instead, and the answer's job says which.
    """

    job: Job
    texts: JobTexts
    session: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class StartExecution:
    """Take a pending job: its next epoch begins, and only writes that name it count from now on."""

    job_id: JobId
    worker: WorkerId
    at: datetime
    repo: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRuntimeSession:
    """The runtime said which session it is in; known from this moment, not from the end."""

    job_id: JobId
    epoch: int
    runtime_session_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleExecution:
    """The execution has ended and the job with it: outcome, what it came to, where its record ends.

    `total` is what the job's whole record comes to, lost executions included; `own` is this
    execution's part of it.
    """

    job_id: JobId
    epoch: int
    at: datetime
    outcome: Outcome
    last_seq: int
    total: Totals
    own: Totals
    answer: str | None = None


Change = SubmitJob | StartExecution | RecordRuntimeSession | SettleExecution


class Why(StrEnum):
    """Why a change was refused."""

    MISSING = "missing"
    """There is no such row."""
    ID_TAKEN = "id_taken"
    """Another row has this id already; make a new one and try again."""
    DUPLICATE = "duplicate"
    """A job with this dedupe key exists; `job` is it."""
    STATUS = "status"
    """The lifecycle has no such step from where it stands."""
    FENCED = "fenced"
    """A later epoch owns the job."""
    SESSION_BUSY = "session_busy"
    """Another job is active in the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """It happened, in one transaction; `rows` are the rows as they are now, `job` the job among them."""

    rows: tuple[Row, ...]
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing changed: what was found instead."""

    why: Why
    message: str
    job: Job | None = None


Answer = Applied | Refused
