"""Claims: which waiting job is taken next.

The most important first, among equals the one submitted first, over all agents alike; one that has waited
long enough goes before more important ones, so that nothing starves.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

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
from nightherd.model.jobs.changes import ClaimJob, StartExecution
from nightherd.model.jobs.decisions import start
from nightherd.model.jobs.job import Job
from nightherd.model.limits.login_decisions import limit_in_the_way
from nightherd.model.worker import WORKER_LIFECYCLE, Worker, WorkerStatus
from nightherd.model.workflows.run import RunId

IN_RUN = 100
"""Waiting jobs of a run that are looked at for one that may start."""
STARVING = timedelta(minutes=10)
"""After waiting this long a job's turn comes whatever its priority."""


def claim(change: ClaimJob, rows: Rows) -> Answer:
    """Start the job whose turn it is. A worker that was given up gets none: it could not keep it."""
    worker = rows.get(Worker, change.worker)
    if worker is not None and worker.status is not WorkerStatus.ALIVE:
        return Refused(why=Why.STATUS, message=f"worker {worker.id} is {worker.status}")
    if change.fleet_limit is not None and rows.count_running() >= change.fleet_limit:
        return Refused(why=Why.NOTHING, message=f"{change.fleet_limit} jobs are running already")
    if change.run_id is not None:
        return _claim_in_run(change, RunId(change.run_id), rows)
    candidates = [
        job
        for agent in rows.waiting_agents()
        if _may_run(agent, change, rows)
        for job in _foremost(agent, change.at, rows)
    ]
    if not candidates:
        return Refused(why=Why.NOTHING, message="no job can be claimed now")
    job = min(candidates, key=lambda candidate: _place(candidate, change.at))
    return start(_started(job, change), rows)


def _claim_in_run(change: ClaimJob, run_id: RunId, rows: Rows) -> Answer:
    """Start the first job of the run that may start."""
    for job in rows.waiting_jobs_in_run(run_id, change.at, IN_RUN):
        if _may_run(job.agent, change, rows):
            answer = start(_started(job, change), rows)
            if isinstance(answer, Applied):
                return answer
    return Refused(why=Why.NOTHING, message=f"no job of {run_id} can be claimed now")


def _may_run(agent: str, change: ClaimJob, rows: Rows) -> bool:
    """Whether the worker runs jobs of the agent, and one more may run."""
    most = change.agents.get(agent)
    if most is None or rows.count_running(agent) >= most:
        return False
    return limit_in_the_way(change.stopped_by.get(agent, ()), change.at, rows) is None


def _started(job: Job, change: ClaimJob) -> StartExecution:
    return StartExecution(
        job_id=job.id,
        worker=change.worker,
        at=change.at,
        repo=change.repos.get(job.agent),
        stopped_by=change.stopped_by.get(job.agent, ()),
    )


def _foremost(agent: str, at: datetime, rows: Rows) -> list[Job]:
    """The agent's most important waiting job, and its oldest."""
    found = (rows.next_waiting_job(agent, at), rows.oldest_waiting_job(agent, at))
    return [job for job in found if job is not None]


def _place(job: Job, at: datetime) -> tuple[bool, int, int]:
    is_starving = at - job.created_at >= STARVING
    return (not is_starving, 0 if is_starving else -job.priority, job.number)


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
