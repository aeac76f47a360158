"""Worker: a process that claims jobs, and the lease that says it is alive."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from nightherd.model.ids import WorkerId
from nightherd.model.lifecycle import Lifecycle


class WorkerStatus(StrEnum):
    """Where a worker stands."""

    ALIVE = "alive"
    LEFT = "left"
    LOST = "lost"


WORKER_LIFECYCLE = Lifecycle(
    "worker",
    {
        WorkerStatus.ALIVE: frozenset({WorkerStatus.LEFT, WorkerStatus.LOST}),
        WorkerStatus.LEFT: frozenset(),
        WorkerStatus.LOST: frozenset(),
    },
)


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's row. One lease covers all its executions.

    The deadline is on the machine's monotonic clock of one boot: setting the wall clock, or sleeping
    through the night, moves nothing.
    """

    id: WorkerId
    status: WorkerStatus
    host: str
    pid: int
    process_started: str
    """When the process began, as the system says it: a pid used again is another process."""
    boot_id: str
    deadline: float
    started_at: datetime
    heartbeat_at: datetime
    ended_at: datetime | None = None


def is_lease_over(
    worker: Worker, *, boot_id: str, monotonic: float, is_process_alive: bool
) -> bool:
    """Whether the worker can no longer be at work: ended, another boot, its process gone, or silent too long."""
    return (
        worker.status is not WorkerStatus.ALIVE
        or worker.boot_id != boot_id
        or not is_process_alive
        or monotonic >= worker.deadline
    )
