"""Changes of jobs and their executions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.jobs.job import Job, JobTexts
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.login import LoginLimit
from nightherd.model.sessions.session import Session
from nightherd.model.usage import Totals
from nightherd.model.work.changes import StartWork


class SubmitJob(msgspec.Struct, frozen=True, kw_only=True):
    """Record a new job, before anything runs.

    `session` is what the job would begin; when its key has a current session that fits, the job joins
    that one instead, and the answer's job says which. One that does not fit is over, and `session_note`
    of the job's texts says why. `into` is the session a caller chose: nothing is compared then.
    With `is_branch`, `session` is a new branch of its parent, recorded together with the job.
    With `refuses_held` the job is refused, not queued, behind a job that waits for a person.
    """

    job: Job
    texts: JobTexts
    session: Session
    into: SessionId | None = None
    is_branch: bool = False
    login: str | None = None
    """The login that its agent's jobs use (model/limits/login.py)."""
    refuses_held: bool = False
    retries: JobId | None = None
    """The ended job whose work it does once more."""
    work: StartWork | None = None
    """The issue that it works on, taken before."""


class StartExecution(msgspec.Struct, frozen=True, kw_only=True):
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


class RecordRuntimeSession(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime said which session it is in; known from this moment, not from the end."""

    job_id: JobId
    epoch: int
    runtime_session_id: str
    at: datetime
    session_note: str | None = None
    """Why it is not the session the job was to continue in; None when it is, or there was none."""


class RecordContainer(msgspec.Struct, frozen=True, kw_only=True):
    """The execution runs in this container from now on, or in none; its session is where it runs."""

    job_id: JobId
    epoch: int
    container_id: str | None


class SettleExecution(msgspec.Struct, frozen=True, kw_only=True):
    """The execution has ended and the job with it: outcome, its result, where its record ends.

    `total` is the totals of the job's whole record, lost executions included; `own` is this
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


class SuspendExecution(msgspec.Struct, frozen=True, kw_only=True):
    """The execution has ended and the job is suspended: until a time, or until a person resumes it."""

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


class ResumeJob(msgspec.Struct, frozen=True, kw_only=True):
    """A suspended job waits for its next execution again.

    `prompt` is the new prompt; `overrides` replace those it has, by key. With `only_due` it is
    refused before the time the job waits for. `lifts` are limits of logins that are over for a job which waits for
    one: a person wants it tried now. `key` is the dedupe key of the request.
    """

    job_id: JobId
    at: datetime
    prompt: str | None = None
    overrides: JobOptions = NO_OPTIONS
    key: str | None = None
    only_due: bool = False
    lifts: tuple[str, ...] = ()


class LoseExecution(msgspec.Struct, frozen=True, kw_only=True):
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
    """Whether it resumes by itself; if not, the job ends as interrupted, and its session can be resumed."""
    last_seen: datetime | None = None
    """The owner's last sign of life, where the execution ended; None when it lived until `at`."""
    last_checkpoint: int = 0
    """The highest number of a checkpoint in its journal; 0 when the writer of the change does not know."""


class ClaimJob(msgspec.Struct, frozen=True, kw_only=True):
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
    stopped_by: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    run_id: str | None = None
    """Only jobs of this workflow run, and of runs below it, are taken."""


class CancelJob(msgspec.Struct, frozen=True, kw_only=True):
    """End a job: at once when it waits; a running one is marked, and its owner stops it."""

    job_id: JobId
    at: datetime


class CorrectJob(msgspec.Struct, frozen=True, kw_only=True):
    """The journal knows better than the row: the row becomes `job`, if it still is what was looked at."""

    expected: Job
    job: Job
    reason: str


class FailSuspended(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waits does not continue: it fails, because of what it waits for."""

    job_id: JobId
    at: datetime
    message: str


class FailWaiting(msgspec.Struct, frozen=True, kw_only=True):
    """End a job that no worker has, pending or suspended, as failed."""

    job_id: JobId
    at: datetime
    message: str
    code: str
