"""What a person is asked about a run that failed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox.item import (
    TITLE_LIMIT,
    Asked,
    InboxItem,
    InboxTexts,
    ItemKind,
    ItemStatus,
    item_id,
)
from nightherd.model.text import shorten
from nightherd.model.workflows.conductor.outcomes import REJECTED
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus


def failure_key(run_id: RunId) -> str:
    """Return the key of the item about a run that failed."""
    return f"run-failure:{run_id}"


def superseded_by(run: WorkflowRun, rows: Rows) -> Iterator[InboxItem]:
    """Yield the item about the failed run whose rest a new run does: nobody has to decide about that any more."""
    if run.retried_from is None:
        return
    item = rows.get(InboxItem, item_id(failure_key(run.retried_from)))
    if item is not None and item.is_pending:
        yield replace(item, status=ItemStatus.SUPERSEDED, decided_at=run.started_at)


def asked_about(run: WorkflowRun, at: datetime) -> Asked | None:
    """Return what a person is asked about a run that failed; None where nobody has to decide anything."""
    if run.status is not RunStatus.FAILED or run.parent_run_id is not None:
        return None
    key = failure_key(run.id)
    title = f"workflow {run.workflow_name} failed: {run.error or 'no reason is known'}"
    item = InboxItem(
        id=item_id(key),
        kind=ItemKind.FAILURE,
        status=ItemStatus.PENDING,
        created_at=at,
        subject=run.id,
        title=shorten(" ".join(title.split()), TITLE_LIMIT),
        dedupe_key=key,
        schedule=run.schedule,
        workflow_run_id=run.id,
    )
    body = {"error": run.error, "status": run.status.value, "workflow": run.workflow_name}
    return Asked(item=item, texts=InboxTexts(item_id=item.id, body=body))


def was_rejected(run: WorkflowRun, rows: Rows) -> bool:
    """Whether the run failed because a person said no, in it or in a run below it: they know."""
    return any(
        f"{REJECTED} by {item.decided_by}" in (run.error or "")
        for item in _gates_of(run.id, rows)
        if item.status is ItemStatus.REJECTED
    )


def _gates_of(run_id: RunId, rows: Rows) -> Iterator[InboxItem]:
    """The items of the gates of a run, and of the failed runs below it."""
    for node in rows.run_nodes(run_id).rows.values():
        item = rows.get(InboxItem, node.item_id) if node.item_id is not None else None
        if item is not None:
            yield item
        child = rows.get(WorkflowRun, node.child_run_id) if node.child_run_id is not None else None
        if child is not None and child.status is RunStatus.FAILED:
            yield from _gates_of(child.id, rows)
