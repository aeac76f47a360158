"""What follows for runs from a change of a job or an inbox item: in the same transaction, always."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from nightherd.model.change import Applied, Change, Row
from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox.item import InboxItem
from nightherd.model.jobs.changes import LoseExecution
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.workflows.conductor.advancing import MOST_RESTARTS
from nightherd.model.workflows.conductor.changes import AdvanceRun
from nightherd.model.workflows.conductor.outcomes import STATUS_OF_JOB, moved
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunId


def with_runs(change: Change, decided: Applied, rows: Rows) -> Applied:
    """Add what follows for the runs whose jobs or gates `decided` writes."""
    more: list[Row] = []
    touched: dict[RunId, list[str]] = {}
    at = getattr(change, "at", None)
    for row in decided.rows:
        if type(row) is Job and row.node_id is not None and row.workflow_run_id is not None:
            at = at or row.finished_at or row.created_at
            run_id = RunId(row.workflow_run_id)
            before = rows.get(Job, row.id)
            if before is None or before.status is row.status:
                continue
            if _needs_decision(before.status, row.status):
                touched.setdefault(run_id, []).append(row.node_id)
            else:
                more += _node_of(row, rows)
            if isinstance(change, LoseExecution) and not change.is_planned:
                restarted = list(_with_restart(run_id, rows))
                more += restarted
                if any(run.restart_count > MOST_RESTARTS for run in restarted):
                    touched.setdefault(run_id, []).append(row.node_id)
        elif type(row) is InboxItem and row.node_id is not None and not row.is_pending:
            known = rows.get(InboxItem, row.id)
            if known is not None and known.is_pending and row.workflow_run_id is not None:
                at = at or row.decided_at
                touched.setdefault(RunId(row.workflow_run_id), []).append(row.node_id)
    if not (more or touched):
        return decided
    then: tuple[Change, ...] = ()
    if at is not None:
        then = tuple(
            AdvanceRun(run_id=run_id, at=at, node_ids=tuple(node_ids))
            for run_id, node_ids in touched.items()
        )
    return replace(decided, rows=(*decided.rows, *more), then=(*decided.then, *then))


def _needs_decision(before: JobStatus, after: JobStatus) -> bool:
    """Whether more follows than the node's own status: it ended, or the run may pause or continue."""
    quick = (JobStatus.PENDING, JobStatus.RUNNING)
    return not (before in quick and after in quick)


def _node_of(job: Job, rows: Rows) -> Iterator[Row]:
    """The job's node, with the job's status."""
    node = rows.get(WorkflowNode, job.node_id or "")
    status = STATUS_OF_JOB[job.status]
    if node is not None and not node.has_ended and node.status is not status:
        yield moved(node, status, node.created_at)


def _with_restart(run_id: RunId, rows: Rows) -> Iterator[WorkflowRun]:
    run = rows.get(WorkflowRun, run_id)
    if run is not None and not run.is_terminal:
        yield replace(run, restart_count=run.restart_count + 1)
