"""Execution: one try at a job by one worker, fenced by its epoch."""

from __future__ import annotations

from enum import StrEnum

from nightherd.model.lifecycle import Lifecycle


class ExecutionStatus(StrEnum):
    """Where one try stands."""

    STARTED = "started"
    FINISHED = "finished"
    LOST = "lost"


EXECUTION_LIFECYCLE = Lifecycle(
    "execution",
    {
        ExecutionStatus.STARTED: frozenset({ExecutionStatus.FINISHED, ExecutionStatus.LOST}),
        ExecutionStatus.FINISHED: frozenset(),
        ExecutionStatus.LOST: frozenset(),
    },
)
