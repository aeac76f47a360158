"""Checkpoint: a bookmark in a job's journal. The messages are in the journal; this is where to continue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.units import FREE, MicroUsd

REMOVED = "removed"
"""Where a header says which checkpoints that have only a line were taken away: ranges of numbers."""

HEADER_LIMIT = 8 * 1024
"""Bytes of JSON a checkpoint's header may take: a bookmark costs the same at any length of conversation."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the record, at which trigger point, what had been used by then.

    The first of each execution and those at which a job stops are rows; the others are lines of the journal.
    """

    id: str
    job_id: JobId
    number: int
    epoch: int
    seq: int
    trigger: str
    status: str
    created_at: datetime
    turn: int = 0
    suspend_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cost_microusd: MicroUsd = FREE
    duration_ms: int = 0
    header: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What else the resumed execution needs, bounded: limits, suspension, hooks."""
    removed_at: datetime | None = None
    """When it was taken away; lists leave it out."""

    @property
    def tokens(self) -> int:
        """Tokens of every kind used by then."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_creation_input_tokens
            + self.cache_read_input_tokens
        )


class RemoveCheckpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Take bookmarks of a job away. Rows and lines stay; the last one of a job that can continue is refused."""

    job_id: JobId
    numbers: tuple[int, ...]
    at: datetime
    kept: tuple[int, ...] = ()
    """The job's other bookmarks: a row that speaks for one of them is still needed."""


def checkpoint_id(job_id: JobId, number: int) -> str:
    """The key of a job's n-th checkpoint."""
    return f"{job_id}#{number}"


class TriggerPoint(StrEnum):
    """Where a run is."""

    PRE_TURN = "pre_turn"
    POST_LLM = "post_llm"
    POST_TOOLS = "post_tools"
    ON_SUSPEND = "on_suspend"
    ON_ERROR = "on_error"
    ON_CANCEL = "on_cancel"
