"""WorkItem: an issue that this fleet has taken, once or more often, and where it stands.

One row for each issue: so no two processes of one fleet can have the same issue (INV-ONCE). A row is there before
anything is written to the tracker, and each step that was taken there is noted after it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NewType

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.lifecycle import Lifecycle

WorkId = NewType("WorkId", str)

HAND = timedelta(seconds=60)
"""How long one process has an issue in hand before another may take it up. No request takes as long as this."""
LONGEST_WAIT = timedelta(days=1)
"""No wait is longer than this: one that is was noted before a clock was set back."""
TITLE_LIMIT = 200
ERROR_LIMIT = 300


class WorkStatus(StrEnum):
    """Where an issue stands."""

    RESERVED = "reserved"
    """This fleet wants it; other fleets do not know yet."""
    HELD = "held"
    """It is this fleet's, and waits for its job."""
    WORKING = "working"
    """It has a job."""
    SETTLING = "settling"
    """Its job has ended, or it gets none: the tracker is to be told."""
    DONE = "done"
    FAILED = "failed"
    """It was tried as often as may be."""
    RELEASED = "released"
    """It is ready to be taken again."""
    LOST = "lost"
    """Another fleet has it."""


WORK_LIFECYCLE = Lifecycle(
    "work item",
    {
        # Released at once where the tracker refused the lock: nothing was written there.
        WorkStatus.RESERVED: frozenset(
            {WorkStatus.HELD, WorkStatus.LOST, WorkStatus.SETTLING, WorkStatus.RELEASED}
        ),
        WorkStatus.HELD: frozenset({WorkStatus.WORKING, WorkStatus.SETTLING}),
        WorkStatus.WORKING: frozenset({WorkStatus.SETTLING}),
        WorkStatus.SETTLING: frozenset({WorkStatus.DONE, WorkStatus.FAILED, WorkStatus.RELEASED}),
        # An issue that was made ready again may be taken again.
        WorkStatus.DONE: frozenset({WorkStatus.RESERVED}),
        WorkStatus.FAILED: frozenset({WorkStatus.RESERVED}),
        WorkStatus.RELEASED: frozenset({WorkStatus.RESERVED}),
        WorkStatus.LOST: frozenset({WorkStatus.RESERVED}),
    },
)

OPEN = frozenset({WorkStatus.RESERVED, WorkStatus.HELD, WorkStatus.WORKING, WorkStatus.SETTLING})
"""Where something is still to be done."""
WITHOUT_JOB = frozenset({WorkStatus.RESERVED, WorkStatus.HELD})


class WorkOutcome(StrEnum):
    """What came of a claim."""

    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    """Its job was cancelled."""
    UNUSED = "unused"
    """It got no job: it was not ready any more, or nothing wanted it."""
    RELEASED = "released"
    """A person gave it back."""


class WorkItem(msgspec.Struct, frozen=True, kw_only=True):
    """An issue's row. Its text is not here: jobs have it in their prompt."""

    id: WorkId
    """`SOURCE#NUMBER`."""
    source: str
    issue: int
    agent: str
    schedule: str
    status: WorkStatus
    claim: str
    """By which our ref is recognised; another one each time it is taken."""
    reserved_at: datetime
    changed_at: datetime
    terms: Mapping[str, Any]
    """The source as it was when the issue was taken."""
    title: str = ""
    attempts: int = 0
    """Jobs it had since it was last done or given up."""
    job_id: JobId | None = None
    outcome: WorkOutcome | None = None
    is_labelled: bool = False
    """The labels may say that it is in progress: noted before they are written."""
    is_told: bool = False
    """The result was commented, or there is nothing to say."""
    is_relabelled: bool = False
    """The labels say what came of it."""
    comment_id: str | None = None
    not_before: datetime | None = None
    """When it may be taken again."""
    due_at: datetime | None = None
    """When the next step is tried, after one that failed."""
    tries: int = 0
    """How often the next step failed in a row."""
    last_error: str | None = None
    step_by: str | None = None
    """The process that writes to the tracker now, until `step_until`."""
    step_until: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether something is still to be done."""
        return self.status in OPEN

    @property
    def schedule_id(self) -> str:
        """`AGENT/NAME` of the schedule that took it."""
        return f"{self.agent}/{self.schedule}"


def lies_ahead(until: datetime | None, now: datetime, longest: timedelta = LONGEST_WAIT) -> bool:
    """Whether a wait that is never longer than `longest` lasts until then; a clock that was set back ends it."""
    return until is not None and now < until <= now + 2 * longest


def short_id(id: str) -> str:
    """`OWNER/NAME#7`, with its server unless that is the public one."""
    return id.partition(":")[2]


def work_id(source: str, issue: int) -> WorkId:
    """The key of an issue."""
    return WorkId(f"{source}#{issue}")
