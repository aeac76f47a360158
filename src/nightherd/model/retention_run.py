"""Retention run: what automatic retention did last, and what it has to do now."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from nightherd.model.persistence import Retention
from nightherd.model.text import counted

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
    """Jobs whose checkpoints could not be removed."""

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


def run_text(run: RetentionRun) -> str:
    """The run on one line, with what a person can do about it."""
    count = f"{counted(run.checkpoints, 'checkpoint')} of {counted(run.jobs, 'job')}"
    if not run.is_announcement:
        failed = f"; {counted(run.failures, 'job')} failed" if run.failures else ""
        retry = "; see why: nightherd retention apply" if run.failures else ""
        return f"retention: archived or removed {count}{failed}{retry}"
    what = f"will archive or remove {count}" if run.jobs else "will run once a day"
    return (
        f"retention: {what}, from {run.next_at:%Y-%m-%dT%H:%M:%SZ} on; jobs and journals stay. "
        f"Look: nightherd retention plan. Do it now: nightherd retention apply. Switch it off: {SWITCH}"
    )
