"""Change: one state change as a value, and what applying it came to.

A change says what it wants and what it expects to find. `model/decide.py` decides it against the rows as
they are; a store carries the decision out in one transaction. Two words answer: `Applied` or `Refused`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from nightherd.model.adopted import AdoptTurns, RefreshAdopted
from nightherd.model.agent_state import AgentState
from nightherd.model.checkpoint import Checkpoint, RemoveCheckpoints
from nightherd.model.delivery import Delivery
from nightherd.model.execution import Execution
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.job import Job, JobTexts
from nightherd.model.limits import Hit
from nightherd.model.login_limit import LoginLimit
from nightherd.model.outcome import Outcome
from nightherd.model.raising import AmendJob
from nightherd.model.schedule import ScheduleOverride, ScheduleState, Slot
from nightherd.model.schedule_change import OverrideSchedule, PlanSchedule
from nightherd.model.session import Session
from nightherd.model.session_change import (
    ExpireSession,
    ForkSession,
    RemoveSession,
    RenameSession,
    UseSession,
)
from nightherd.model.spending import CountUsage, Reservation, Spending
from nightherd.model.suspension import FailSuspended, FailWaiting, Suspension
from nightherd.model.usage import Totals
from nightherd.model.worker import Worker, WorkerStatus

Row = (
    Job
    | JobTexts
    | Execution
    | Session
    | Worker
    | AgentState
    | ScheduleState
    | ScheduleOverride
    | Delivery
    | Slot
    | Checkpoint
    | Spending
    | Reservation
    | LoginLimit
)
"""One row of state. Every field is a column; the first is the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitJob:
    """Record a new job, before anything runs.

    `session` is what the job would begin; when its key has a current session that fits, the job joins
    that one instead, and the answer's job says which. One that does not fit is over, and `session_note`
    of the job's texts says why. `into` is the session a caller chose: nothing is compared then.
    With `refuses_held` the job is refused, not queued, behind a job that waits for a person.
    """

    job: Job
    texts: JobTexts
    session: Session
    into: SessionId | None = None
    login: str | None = None
    """The login that its agent's jobs use (model/login.py)."""
    refuses_held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartExecution:
    """Take a pending job: its next epoch begins, and only writes that name it count from now on.

    The limits are how many jobs of the agent, and of the whole fleet, may run at once. It is refused while one of
    the limits `stopped_by` of its login lasts (`LoginLimit`); the first of their ids is the login itself.
    """

    job_id: JobId
    worker: WorkerId
    at: datetime
    repo: str | None = None
    agent_limit: int | None = None
    fleet_limit: int | None = None
    stopped_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRuntimeSession:
    """The runtime said which session it is in; known from this moment, not from the end."""

    job_id: JobId
    epoch: int
    runtime_session_id: str
    at: datetime
    session_note: str | None = None
    """Why it is not the session the job was to go on in; None when it is, or there was none."""


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
    last_checkpoint: int | None = None
    """The highest number of a checkpoint in its journal, 0 if unknown; None if the execution saved its last itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendExecution:
    """The execution has ended and the job waits: for a time, or for somebody to let it go on."""

    job_id: JobId
    epoch: int
    at: datetime
    suspension: Suspension
    last_seq: int
    total: Totals
    own: Totals
    answer: str | None = None
    login_limit: LoginLimit | None = None
    """The limit of the job's login that it waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeJob:
    """A suspended job waits for its next execution again.

    `prompt` is what it is told besides; `overrides` replace those it has, by key. With `only_due` it is
    refused before the time the job waits for. `lifts` are limits of logins that are over for a job which waits for
    one: a person wants it tried now.
    """

    job_id: JobId
    at: datetime
    prompt: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    only_due: bool = False
    lifts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseExecution:
    """The execution's owner is gone: the job waits for its next one, or fails when it was lost too often.

    What it used is not lost: `total` and `own` are read off the journal, as for `SettleExecution`.
    """

    job_id: JobId
    epoch: int
    at: datetime
    reason: str
    max_restarts: int
    last_seq: int
    total: Totals
    own: Totals
    is_planned: bool = False
    """Whether its owner gave it back in order: that is no restart, and no reason to give up on it."""
    auto_resume: bool = True
    """Whether it goes on by itself; if not, the job ends as interrupted, and its session can be resumed."""
    last_seen: datetime | None = None
    """The owner's last sign of life, where the execution ended; None when it lived until `at`."""
    last_checkpoint: int = 0
    """The highest number of a checkpoint in its journal; 0 when the writer of the change does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimJob:
    """Take the waiting job whose turn it is, if any may be taken now.

    `agents` are those the worker can run, each with how many of its jobs may run at once; `fleet_limit`
    is how many may run in the whole fleet. Every running job counts, whatever started it. `stopped_by` are
    the limits of logins because of which an agent's jobs may not start, as for `StartExecution`.
    """

    worker: WorkerId
    at: datetime
    agents: Mapping[str, int]
    repos: Mapping[str, str]
    fleet_limit: int | None = None
    stopped_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob:
    """End a job: at once when it waits; a running one is marked, and its owner stops it."""

    job_id: JobId
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterWorker:
    """A worker begins, with its first lease."""

    worker: Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendLease:
    """The worker is alive until `deadline`."""

    worker_id: WorkerId
    deadline: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWorker:
    """The worker left, or was found gone."""

    worker_id: WorkerId
    status: WorkerStatus
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetAgent:
    """Forget the agent's error."""

    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FireSlot:
    """A due instant gets its one outcome: `job`, or skipped with the slot's reason.

    With `max_overlap` jobs of the schedule there already it is skipped too, or refused when it `waits`; so it
    is with `max_suspended` suspended ones, and where its session is held by a job that waits for a person.
    `override` is the rule of the override that the slot is an instant of; with another it is refused.
    """

    slot: Slot
    agent: str
    schedule: str
    next_run_at: datetime | None
    next_due_at: datetime | None = None
    job: SubmitJob | None = None
    override: str | None = None
    max_overlap: int | None = None
    max_suspended: int | None = None
    waits: bool = False
    stopped_by: tuple[str, ...] = ()
    """The limits of the agent's login because of which it is skipped too."""
    is_error: bool = False
    """It is skipped because something is wrong with the schedule; `last_error` says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDelivery:
    """A message came in by a webhook and gets its one outcome: `job`, or ignored for the delivery's reason."""

    delivery: Delivery
    job: SubmitJob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveCheckpoint:
    """Put a bookmark at a place of the job's record. Its number and key are given by the store."""

    epoch: int
    checkpoint: Checkpoint
    is_synced: bool = True
    """Whether it survives a power cut once it is acknowledged; the journal it points into may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectJob:
    """The journal knows better than the row: the row becomes `job`, if it still is what was looked at."""

    expected: Job
    job: Job
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRows:
    """Take over rows that something else made. Those whose key is known already are left as they are."""

    rows: tuple[Row, ...]
    source: str


Change = (
    SubmitJob
    | StartExecution
    | RecordRuntimeSession
    | SettleExecution
    | SuspendExecution
    | ResumeJob
    | FailSuspended
    | FailWaiting
    | AmendJob
    | ForkSession
    | UseSession
    | RenameSession
    | ExpireSession
    | RemoveSession
    | LoseExecution
    | ClaimJob
    | CancelJob
    | RegisterWorker
    | ExtendLease
    | EndWorker
    | ResetAgent
    | FireSlot
    | RecordDelivery
    | PlanSchedule
    | OverrideSchedule
    | SaveCheckpoint
    | RemoveCheckpoints
    | CountUsage
    | CorrectJob
    | AdoptRows
    | RefreshAdopted
    | AdoptTurns
)


class Why(StrEnum):
    """Why a change was refused."""

    MISSING = "missing"
    """There is no such row."""
    ID_TAKEN = "id_taken"
    """Another row has this id already; make a new one and try again."""
    DUPLICATE = "duplicate"
    """It is there already: a job with this dedupe key (`job` is it), a slot that was decided."""
    STATUS = "status"
    """The lifecycle has no such step from where it stands."""
    CANCELLED = "cancelled"
    """Somebody has cancelled the job: its journal has to say so before its row does."""
    FENCED = "fenced"
    """A later epoch owns the job."""
    SESSION_BUSY = "session_busy"
    """Another job is active in the session, or was submitted to it before and has not ended."""
    SESSION_HELD = "session_held"
    """A suspended job of the session waits for a person; `job` is it."""
    SESSION_OVER = "session_over"
    """The session is expired or was cleaned up, or is one job's own and that job has ended."""
    TOO_EARLY = "too_early"
    """What it waits for has not come yet."""
    STALE = "stale"
    """What it was worked out from is not so any more; look again."""
    FULL = "full"
    """As many jobs run as may run at once."""
    RATE_LIMITED = "rate_limited"
    """A limit of the job's login lasts."""
    NOTHING = "nothing"
    """There is no job that may be taken now."""
    TOO_LARGE = "too_large"
    """A bounded row would not be."""
    OVER_BUDGET = "over_budget"
    """What jobs may use together is used up; `hit` says what and how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """It happened, in one transaction; `rows` are the rows as they are now, `job` the job it is about."""

    rows: tuple[Row, ...]
    job: Job | None = None
    texts: JobTexts | None = None
    """The job's texts, where it was taken: whoever runs it needs them next."""
    deleted: tuple[ScheduleOverride, ...] = ()
    """Rows that are gone now, without what they said. Only overrides are ever deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing changed: what was found instead."""

    why: Why
    message: str
    job: Job | None = None
    hit: Hit | None = None


Answer = Applied | Refused
