"""WorkflowRun: one run of a workflow, its id, its statuses, and what decisions need to know about it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import NewType

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.ids import RandomText
from nightherd.model.lifecycle import Lifecycle

RunId = NewType("RunId", str)

RUN_PREFIX = "run-"
RUN_ID = re.compile(r"run-[0-9]{4}-[0-9]{2}-[0-9]{2}-[a-z0-9]{6}")


def generate_run_id(at: datetime, random_text: RandomText) -> RunId:
    """Return a fresh run id; its date is the UTC date of `at`. Uniqueness is the store's to check."""
    return RunId(f"run-{at.astimezone(UTC):%Y-%m-%d}-{random_text(6)}")


def parse_run_id(text: str) -> RunId:
    """Return `text` as a run id, or raise `InvalidValueError`."""
    if RUN_ID.fullmatch(text) is None:
        raise InvalidValueError(f"{text!r} is not a run id (run-YYYY-MM-DD-xxxxxx)")
    return RunId(text)


class RunStatus(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    """It waits for another run of its workflow to end."""
    RUNNING = "running"
    PAUSED = "paused"
    """Everything in it waits for people, times or events."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def phrase(self) -> str:
        """What a sentence says about a run with this status: `is paused`, `has failed`."""
        return _PHRASES.get(self, f"is {self}")


_PHRASES = {
    RunStatus.SUCCEEDED: "has succeeded",
    RunStatus.FAILED: "has failed",
    RunStatus.CANCELLED: "was cancelled",
}
_RUN_ENDS = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED})

RUN_LIFECYCLE = Lifecycle(
    "workflow run",
    {
        RunStatus.QUEUED: frozenset({RunStatus.RUNNING, RunStatus.FAILED, RunStatus.CANCELLED}),
        RunStatus.RUNNING: frozenset({RunStatus.PAUSED}) | _RUN_ENDS,
        RunStatus.PAUSED: frozenset({RunStatus.RUNNING}) | _RUN_ENDS,
        **{status: frozenset() for status in _RUN_ENDS},
    },
)


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the decisions of a run need to know about it."""

    id: RunId
    workflow: str
    started_at: str = ""
    """As expressions see it: UTC, ISO 8601."""
    attempt: int = 1
    status: RunStatus = RunStatus.RUNNING
    is_cancelling: bool = False
    """Whether a person or a newer run has ended it: nothing new begins."""
