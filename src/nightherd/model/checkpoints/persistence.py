"""Persistence: when a bookmark is put, how state is written for others to read, and how long it is kept.

All of it is data: the shipped `state_schema.yaml`, and what a project lays over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.model.checkpoints.checkpoint import TriggerPoint

MUST_SAVE = 10
"""The priority of triggers that are always saved, and synced to the disk when they are."""


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a checkpoint is made at one place of a run, and how much it counts."""

    enabled: bool = True
    description: str = ""
    priority: int = 1


class Backoff(StrEnum):
    """How the pauses between tries grow."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    FIXED = "fixed"


class WriteRetry(msgspec.Struct, frozen=True, kw_only=True):
    """What happens when the file cannot be written."""

    enabled: bool = True
    max_attempts: int = 3
    backoff: Backoff = Backoff.EXPONENTIAL

    @property
    def attempts(self) -> int:
        """How often writing is tried at most."""
        return self.max_attempts if self.enabled else 1

    def pause_ms(self, failures: int) -> int:
        """How long to wait after so many failures in a row."""
        return min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * self._growth(failures))

    def _growth(self, failures: int) -> int:
        match self.backoff:
            case Backoff.EXPONENTIAL:
                return int(2 ** (failures - 1))
            case Backoff.LINEAR:
                return failures
            case Backoff.FIXED:
                return 1


FIRST_PAUSE_MS = 50
LONGEST_PAUSE_MS = 5_000
"""The job's end waits for the file: no pause may double into hours."""


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """How `state.json` is written."""

    incremental: bool = False
    """False writes the whole file at checkpoints too, as fast as is useful; true only where the job stops."""
    compress: bool = False
    atomic: bool = True
    retry: WriteRetry = msgspec.field(default_factory=WriteRetry)


class OnCompletion(StrEnum):
    """What becomes of a job's checkpoints once it has ended."""

    ARCHIVE = "archive"
    DELETE = "delete"
    KEEP = "keep"


class Cleanup(msgspec.Struct, frozen=True, kw_only=True):
    """Which old checkpoints go."""

    enabled: bool = True
    keep_last_n: int = 3
    delete_older_than_days: int = 7


class ChatRetention(msgspec.Struct, frozen=True, kw_only=True):
    """How long what was said in chat is kept, and the files that people sent."""

    enabled: bool = True
    delete_older_than_days: int = 90


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How many checkpoints are kept, and for how long; and how long what was said in chat is."""

    automatic: bool = True
    """Whether a started fleet does it by itself, once a day."""
    max_checkpoints: int = 10
    cleanup: Cleanup = msgspec.field(default_factory=Cleanup)
    chat: ChatRetention = msgspec.field(default_factory=ChatRetention)
    action: OnCompletion = OnCompletion.ARCHIVE
    archive_path: str = "threads/{thread_id}/archive/"


class Persistence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `state_persistence.yaml` can say."""

    schema_version: str
    required: tuple[str, ...]
    schema: Mapping[str, Any]
    """What a `state.json` has to look like."""
    triggers: Mapping[TriggerPoint, Trigger]
    performance: Performance
    retention: Retention
    is_project: bool = False
    """Whether a project has laid something over what is shipped."""

    def is_enabled(self, point: TriggerPoint) -> bool:
        """Whether a checkpoint is made there."""
        trigger = self.triggers.get(point)
        return trigger is not None and trigger.enabled

    def priority(self, point: TriggerPoint) -> int:
        """How much a checkpoint there counts."""
        trigger = self.triggers.get(point)
        return 0 if trigger is None else trigger.priority


DEFAULT = Persistence(
    schema_version="1.1.0",
    required=("thread_id", "directive", "version", "saved_at"),
    schema={},
    triggers={
        TriggerPoint.PRE_TURN: Trigger(priority=1),
        TriggerPoint.POST_LLM: Trigger(priority=2),
        TriggerPoint.POST_TOOLS: Trigger(priority=3),
        TriggerPoint.ON_SUSPEND: Trigger(priority=MUST_SAVE),
        TriggerPoint.ON_ERROR: Trigger(priority=MUST_SAVE),
        TriggerPoint.ON_CANCEL: Trigger(priority=MUST_SAVE),
    },
    performance=Performance(),
    retention=Retention(),
)
"""What is shipped, for those who have no file at hand: everything but what a `state.json` looks like."""
