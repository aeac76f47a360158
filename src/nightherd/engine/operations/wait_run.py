"""Waiting for a run: until it has ended, or only a person, an event or a later time continues it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import anyio

from nightherd.engine.contexts import Stores
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.operations.runs import get_run
from nightherd.model.jobs.job import JobStatus
from nightherd.model.workflows.conductor.changes import CancelRun
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.ports import StateReader

LOOK_AGAIN_S = 0.1
SHORT_PAUSE = timedelta(minutes=1)
"""A pause that ends by itself within this time is waited for."""

OnLook = Callable[[WorkflowRun], None]


async def wait_for_run(
    run_id: RunId, context: Stores, *, by: str, stopper: Stopper, on_look: OnLook
) -> WorkflowRun:
    """Return the run once it has ended, or waits for something that this caller does not wait for.

    It takes no jobs: a worker has to. `on_look` is called with the run at every look. When stopped, the run is
    cancelled and waited for; when handed over, it is returned as it stands.
    """
    is_cancelled = False
    while True:
        if stopper.reason is not None and not is_cancelled:
            reason = f"cancelled by {by}"
            await context.state.apply(
                [CancelRun(run_id=run_id, at=context.clock.now(), reason=reason)]
            )
            is_cancelled = True
        run = get_run(context.reader, run_id)
        on_look(run)
        if run.is_terminal or stopper.is_handed_over:
            return run
        if stopper.reason is None and _waits_for_others(run, context):
            return run
        await anyio.sleep(LOOK_AGAIN_S)


def _waits_for_others(run: WorkflowRun, context: Stores) -> bool:
    """Whether nothing that a worker does soon continues the run."""
    if run.status is RunStatus.PAUSED:
        return not _continues_by(run.id, context.clock.now() + SHORT_PAUSE, context.reader)
    if run.status is not RunStatus.QUEUED:
        return False
    ahead = {
        status: context.reader.list_runs(
            RunQuery(workflow=run.workflow_name, status=status, limit=1)
        )
        for status in (RunStatus.RUNNING, RunStatus.PAUSED)
    }
    return bool(ahead[RunStatus.PAUSED]) and not ahead[RunStatus.RUNNING]


def _continues_by(run_id: RunId, until: datetime, reader: StateReader) -> bool:
    """Whether something in a paused run, or in a run below it, continues by itself until then."""
    for node in reader.nodes_of_run(run_id):
        if node.has_ended:
            continue
        is_timer = node.kind is NodeKind.WAIT and node.event is None
        if is_timer and node.due_at is not None and node.due_at <= until:
            return True
        job = reader.find_job(node.job_id) if node.job_id is not None else None
        is_waiting = job is not None and job.status is JobStatus.SUSPENDED
        resumes_at = job.resumes_at if job is not None and is_waiting else None
        if resumes_at is not None and resumes_at <= until:
            return True
        if node.child_run_id is not None and _continues_by(node.child_run_id, until, reader):
            return True
    return False
