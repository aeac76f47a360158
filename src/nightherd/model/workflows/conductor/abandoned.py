"""Runs that end without being advanced: every open node ends with them, and what it waits for."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from nightherd.model.change import Applied, Change, Row
from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox.item import InboxItem, ItemStatus
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import row_text
from nightherd.model.workflows.conductor.advancing import ended_run
from nightherd.model.workflows.conductor.changes import CancelRun
from nightherd.model.workflows.conductor.outcomes import moved
from nightherd.model.workflows.conductor.run_records import open_nodes
from nightherd.model.workflows.node import NodeStatus
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunStatus


def abandoned_run(
    run: WorkflowRun, status: RunStatus, reason: str, at: datetime, rows: Rows
) -> Applied:
    """Return a run that is over at once: its nodes end as cancelled, its jobs, sub-workflows and questions too."""
    written: list[Row] = []
    then: list[Change] = []
    for node in open_nodes(rows.run_nodes(run.id).rows.values()):
        over = moved(node, NodeStatus.CANCELLED, at, error=row_text(reason), is_final=True)
        written.append(over)
        if node.job_id is not None:
            then.append(CancelJob(job_id=node.job_id, at=at))
        if node.child_run_id is not None:
            then.append(CancelRun(run_id=node.child_run_id, at=at, reason=reason))
        item = rows.get(InboxItem, node.item_id) if node.item_id is not None else None
        if item is not None and item.is_pending:
            written.append(replace(item, status=ItemStatus.CANCELLED, decided_at=at))
    ended = ended_run(run, status, reason, at, rows)
    return replace(ended, rows=(*written, *ended.rows), then=(*then, *ended.then))
