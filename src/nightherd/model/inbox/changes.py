"""Changes of the inbox."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.inbox.item import Asked, ItemId, Verdict
from nightherd.model.jobs.changes import ResumeJob, SubmitJob
from nightherd.model.workflows.conductor.changes import StartRun


class AskPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Put items into the inbox. Items of a job need the execution that owns it; one that is there already stays."""

    asked: tuple[Asked, ...]
    job_id: JobId | None = None
    epoch: int = 0


class AskAboutJob(msgspec.Struct, frozen=True, kw_only=True):
    """Put a job into the inbox that waits for a person or failed, where its item is missing.

    One that waits for what its own execution asked, and nobody is asked any more, continues: it asks again.
    """

    job_id: JobId
    at: datetime


class AnswerItem(msgspec.Struct, frozen=True, kw_only=True):
    """Record one answer; the one that decides takes effect in the same transaction.

    `resume` or `job` is what a decision to raise, or to try again, sets in motion.
    """

    item_id: ItemId
    verdict: Verdict
    by: str
    via: str
    at: datetime
    text: str | None = None
    input: Mapping[str, Any] | None = None
    seen_hash: str | None = None
    """The hash of what the person was shown; another one is refused. None when they did not say."""
    link: str | None = None
    """The answer link that it was given by; it counts once."""
    resume: ResumeJob | None = None
    job: SubmitJob | None = None
    run: StartRun | None = None
    """The run that does the work of a failed one again."""


class ExpireItem(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody answered in time."""

    item_id: ItemId
    at: datetime


class WithdrawItem(msgspec.Struct, frozen=True, kw_only=True):
    """What the item asks about has changed: nobody is asked any more. An item of a job needs the execution that owns it."""

    item_id: ItemId
    at: datetime
    job_id: JobId | None = None
    epoch: int = 0
