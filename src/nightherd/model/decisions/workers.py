"""Workers: what beginning, staying alive and ending do."""

from __future__ import annotations

from nightherd.model.change import (
    Answer,
    Applied,
    EndWorker,
    ExtendLease,
    Refused,
    RegisterWorker,
    Why,
)
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import WorkerId
from nightherd.model.replace import replace
from nightherd.model.worker import WORKER_LIFECYCLE, Worker, WorkerStatus


def register(change: RegisterWorker, rows: Rows) -> Answer:
    """A new worker."""
    if rows.get(Worker, change.worker.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a worker {change.worker.id} already")
    return Applied(rows=(change.worker,))


def extend(change: ExtendLease, rows: Rows) -> Answer:
    """A later deadline. A worker that was given up stays given up: its executions may be others' by now."""
    worker = _alive(change.worker_id, rows)
    if isinstance(worker, Refused):
        return worker
    return Applied(rows=(replace(worker, deadline=change.deadline, heartbeat_at=change.at),))


def end(change: EndWorker, rows: Rows) -> Answer:
    """The worker's end."""
    worker = _alive(change.worker_id, rows)
    if isinstance(worker, Refused):
        return worker
    status = WORKER_LIFECYCLE.check(worker.status, change.status)
    return Applied(rows=(replace(worker, status=status, ended_at=change.at),))


def _alive(worker_id: WorkerId, rows: Rows) -> Worker | Refused:
    worker = rows.get(Worker, worker_id)
    if worker is None:
        return Refused(why=Why.MISSING, message=f"there is no worker {worker_id}")
    if worker.status is not WorkerStatus.ALIVE:
        return Refused(why=Why.STATUS, message=f"worker {worker.id} is {worker.status}")
    return worker
