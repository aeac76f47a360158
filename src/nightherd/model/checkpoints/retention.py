"""Retention: which of a job's checkpoints are kept, which go, and why. Only a plan; nothing is done here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.checkpoints.persistence import OnCompletion, Retention
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.text import counted
from nightherd.next_step import Action, NextStep, SpellStep, plain_step


class Reason(StrEnum):
    """Why a checkpoint goes."""

    TOO_MANY = "too_many"
    TOO_OLD = "too_old"
    COMPLETED = "completed"


class Needed(StrEnum):
    """Why a checkpoint stays that would go otherwise."""

    LIVE = "live"
    """The job may continue from it."""
    FORK = "fork"
    """A session was branched from there."""


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done with one job's checkpoints."""

    job_id: JobId
    going: tuple[tuple[int, Reason], ...] = ()
    """Numbers, each with the reason."""
    needed: tuple[tuple[int, Needed], ...] = ()
    is_archived: bool = False
    """Whether the job's document and the bookmarks that go are put into the archive first."""
    is_deleted: bool = False
    """Whether the job's document goes too."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those that go."""
        return tuple(number for number, _ in self.going)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.going


def plan(
    job: Job,
    checkpoints: Sequence[Checkpoint],
    retention: Retention,
    *,
    now: datetime,
    forked_at: Collection[int] = (),
) -> JobPlan:
    """What becomes of the job's checkpoints, first to last; `forked_at` are lines others branched from."""
    needed = dict.fromkeys(_branched(checkpoints, forked_at), Needed.FORK)
    if not job.is_terminal and checkpoints:
        needed[checkpoints[-1].number] = Needed.LIVE
    wanted = _wanted(job, checkpoints, retention, now)
    going = [(number, reason) for number, reason in wanted.items() if number not in needed]
    is_over = job.is_terminal and bool(going)
    return JobPlan(
        job_id=job.id,
        going=tuple(going),
        needed=tuple((number, why) for number, why in needed.items() if number in wanted),
        is_archived=is_over and retention.action is OnCompletion.ARCHIVE,
        is_deleted=is_over and retention.action is OnCompletion.DELETE,
    )


def _branched(checkpoints: Sequence[Checkpoint], forked_at: Collection[int]) -> set[int]:
    """For each branch the bookmark it was made at: the first that is not before it."""
    found = set()
    for seq in forked_at:
        behind = [checkpoint.number for checkpoint in checkpoints if checkpoint.seq >= seq]
        found |= set(behind[:1])
    return found


def _wanted(
    job: Job, checkpoints: Sequence[Checkpoint], retention: Retention, now: datetime
) -> dict[int, Reason]:
    """Checkpoints that would be removed if they were not needed."""
    if job.is_terminal and retention.action is not OnCompletion.KEEP:
        return {checkpoint.number: Reason.COMPLETED for checkpoint in checkpoints}
    going: dict[int, Reason] = {}
    for one in checkpoints[: max(0, len(checkpoints) - retention.max_checkpoints)]:
        going[one.number] = Reason.TOO_MANY
    cleanup = retention.cleanup
    if cleanup.enabled:
        oldest = now - timedelta(days=cleanup.delete_older_than_days)
        for one in checkpoints[: max(0, len(checkpoints) - cleanup.keep_last_n)]:
            if one.created_at < oldest:
                going.setdefault(one.number, Reason.TOO_OLD)
    return dict(sorted(going.items()))


EVERY = timedelta(days=1)
SWITCH = "retention: {automatic: false} in config/state_persistence.yaml of the state directory"
"""How a person switches it off."""


class Step(StrEnum):
    """What automatic retention has to do."""

    NOTHING = "nothing"
    ANNOUNCE = "announce"
    APPLY = "apply"


class RetentionRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run. The first in a state directory only announces what the next one does."""

    v: int = 1
    at: datetime
    is_announcement: bool
    checkpoints: int
    """Removed, or to be removed."""
    jobs: int
    failures: int = 0
    """Jobs whose checkpoints, and workspaces, could not be removed."""
    workspaces: int = 0
    """Workspaces removed, or to be removed."""
    texts: int = 0
    """Texts of chat removed, or to be removed."""
    files: int = 0
    """Files of people in chat removed, or to be removed."""
    session_directories: int = 0
    """Directories of sessions in containers removed, or to be removed."""

    @property
    def is_idle(self) -> bool:
        """Whether there was nothing to do."""
        counts = (self.jobs, self.workspaces, self.texts, self.files, self.session_directories)
        return not any(counts)

    @property
    def next_at(self) -> datetime:
        """When the next run is due."""
        return self.at + EVERY


def next_step(retention: Retention, last: RetentionRun | None, now: datetime) -> Step:
    """What to do now, given the last run. A run in the future, before a clock was set back, does not count."""
    if not retention.automatic:
        return Step.NOTHING
    if last is None or (last.is_announcement and now < last.at - EVERY):
        return Step.ANNOUNCE
    is_due = now >= last.next_at or now < last.at - EVERY
    return Step.APPLY if is_due else Step.NOTHING


def directories_text(count: int) -> str:
    """Return how many directories of sessions in containers these are."""
    noun = (
        "directory of a session in containers"
        if count == 1
        else "directories of sessions in containers"
    )
    return f"{count} {noun}"


def run_text(run: RetentionRun, spell: SpellStep = plain_step) -> str:
    """Return the run on one line, with what a person can do about it as `spell` writes it."""
    count = f"{counted(run.checkpoints, 'checkpoint')} of {counted(run.jobs, 'job')}"
    count += f" and {counted(run.workspaces, 'workspace')}" if run.workspaces else ""
    count += f" and {counted(run.texts, 'text')} of chat" if run.texts else ""
    count += f" and {counted(run.files, 'file')} of chat" if run.files else ""
    if run.session_directories:
        count += f" and {directories_text(run.session_directories)}"
    apply_now = spell(NextStep(Action.APPLY_RETENTION))
    if not run.is_announcement:
        failed = f"; {counted(run.failures, 'job')} failed" if run.failures else ""
        retry = f"; to see why: {apply_now}" if run.failures else ""
        return f"retention: archived or removed {count}{failed}{retry}"
    what = "will run once a day" if run.is_idle else f"will archive or remove {count}"
    return (
        f"retention: {what}, from {run.next_at:%Y-%m-%dT%H:%M:%SZ} on; jobs and journals stay. "
        f"To see what: {spell(NextStep(Action.PLAN_RETENTION))}. To do it now: {apply_now}. "
        f"To switch it off: {SWITCH}"
    )
