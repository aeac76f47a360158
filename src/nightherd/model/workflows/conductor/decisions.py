"""Deciding changes of runs: starting, advancing and ending them, events, scratch, limits and switches."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Change, Refused, Row, Why
from nightherd.model.decisions.rows import Rows
from nightherd.model.workflows.conductor.abandoned import abandoned_run
from nightherd.model.workflows.conductor.advancing import advance_run
from nightherd.model.workflows.conductor.changes import (
    AdvanceRun,
    CancelRun,
    MergeScratch,
    OverrideWorkflow,
    RaiseRun,
    SendEvent,
    StartRun,
)
from nightherd.model.workflows.conductor.failed_runs import superseded_by
from nightherd.model.workflows.conductor.outcomes import moved
from nightherd.model.workflows.node import NodeStatus
from nightherd.model.workflows.rows import (
    SCRATCH_LIMIT,
    PinnedWorkflow,
    WorkflowEvent,
    WorkflowNode,
    WorkflowOverride,
    WorkflowRun,
    WorkflowScratch,
    scratch_size,
)
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.model.workflows.triggers import WhenBusy

REPLACED = "a newer run took its place"
MOST_QUEUED = 10_000


def refused(change: StartRun, rows: Rows) -> Refused | None:
    """Why no run is started; None when one is."""
    answer = start(change, rows)
    return answer if isinstance(answer, Refused) else None


def start(change: StartRun, rows: Rows) -> Answer:
    """Record the run: it begins, waits for others of its key, or is not recorded at all."""
    run = change.run
    if run.dedupe_key is not None:
        known = rows.run_with_dedupe_key(run.dedupe_key)
        if known is not None:
            message = f"{known.id} was started by the same request"
            return Refused(why=Why.DUPLICATE, message=message, run_id=known.id)
    if rows.get(WorkflowRun, run.id) is not None:
        return Refused(why=Why.ID_TAKEN, message=f"there is a run {run.id} already")
    override = rows.get(WorkflowOverride, run.workflow_name)
    if override is not None and not override.enabled and run.parent_run_id is None:
        by = f" by {override.updated_by}" if override.updated_by else ""
        message = f"workflow {run.workflow_name} was switched off{by}"
        return Refused(why=Why.SWITCHED_OFF, message=message)
    then: list[Change] = [*change.branches]
    status = RunStatus.RUNNING
    if change.max_runs is not None and run.concurrency_key is not None:
        there = rows.open_runs_of_key(run.concurrency_key, change.max_runs + 1)
        if len(there) >= change.max_runs:
            names = ", ".join(one.id for one in there[:3])
            match change.when_busy:
                case WhenBusy.DROP:
                    message = f"workflow {run.workflow_name} runs already: {names}"
                    return Refused(why=Why.FULL, message=message, run_id=there[0].id)
                case WhenBusy.QUEUE:
                    status = RunStatus.QUEUED
                case WhenBusy.REPLACE:
                    # The oldest make room: they are ended first, and this one begins when they are over.
                    queued = rows.queued_runs_of_key(run.concurrency_key, MOST_QUEUED)
                    excess = (*queued, *there[: len(there) - change.max_runs + 1])
                    then += (
                        CancelRun(run_id=old.id, at=run.started_at, reason=REPLACED)
                        for old in excess
                    )
                    status = RunStatus.QUEUED
    begun = replace(
        run, status=status, definition_hash=change.pinned.hash, number=rows.next_run_number()
    )
    pinned: tuple[Row, ...] = ()
    if rows.get(PinnedWorkflow, change.pinned.hash) is None:
        pinned = (change.pinned,)
    if status is RunStatus.RUNNING:
        then.append(AdvanceRun(run_id=run.id, at=run.started_at))
    beside = (*_node_above(begun, rows), *superseded_by(begun, rows))
    return Applied(
        rows=(*pinned, begun, change.context, *change.kept, *change.kept_texts, *beside),
        run_id=begun.id,
        then=tuple(then),
    )


def advance(change: AdvanceRun, rows: Rows) -> Answer:
    """Record what has become of the run's open nodes, and begin what follows."""
    run = rows.get(WorkflowRun, change.run_id)
    if run is None:
        return _missing(change.run_id)
    if run.is_terminal:
        return Applied(rows=(), run_id=run.id)
    if run.status is RunStatus.QUEUED:
        run = replace(run, status=RunStatus.RUNNING, updated_at=change.at)
    try:
        return advance_run(run, change.at, rows, change.node_ids)
    except Exception as error:  # noqa: BLE001 (an edge: a run that cannot go on takes no job's result with it)
        reason = f"the run cannot go on: {type(error).__name__}: {error}"
        return abandoned_run(run, RunStatus.FAILED, reason, change.at, rows)


def cancel(change: CancelRun, rows: Rows) -> Answer:
    """End a run. Twice is as good as once; a run that is over stays as it is."""
    run = _open_run(change.run_id, rows)
    if isinstance(run, Refused):
        return run
    if run.stopping is not None:
        return Applied(rows=(), run_id=run.id)
    stopping = replace(
        run, stopping=change.reason, is_failing=change.is_failure, updated_at=change.at
    )
    if run.status is RunStatus.QUEUED:
        status = RunStatus.FAILED if change.is_failure else RunStatus.CANCELLED
        return abandoned_run(stopping, status, change.reason, change.at, rows)
    then = AdvanceRun(run_id=run.id, at=change.at)
    return Applied(rows=(stopping,), run_id=run.id, then=(then,))


def send_event(change: SendEvent, rows: Rows) -> Answer:
    """Keep the event, and let the wait that waits for it end."""
    run = rows.get(WorkflowRun, change.run_id)
    if run is None:
        return _missing(change.run_id)
    key = f"{run.id}/{change.key}"
    known = rows.get(WorkflowEvent, key)
    if known is not None:
        message = f"the event {change.name} was sent to {run.id} already"
        return Refused(why=Why.DUPLICATE, message=message, run_id=run.id)
    if run.is_terminal:
        return _over(run)
    event = WorkflowEvent(
        id=key,
        run_id=run.id,
        name=change.name,
        at=change.at,
        by=change.by,
        payload={} if change.payload is None else {"payload": change.payload},
        number=len(rows.events_of_run(run.id)) + 1,
    )
    then = () if run.status is RunStatus.QUEUED else (AdvanceRun(run_id=run.id, at=change.at),)
    return Applied(rows=(event,), run_id=run.id, then=then)


def merge_scratch(change: MergeScratch, rows: Rows) -> Answer:
    """Set values of the scratch, and leave all other keys as they are."""
    run = _open_run(change.run_id, rows)
    if isinstance(run, Refused):
        return run
    known = rows.get(WorkflowScratch, run.id)
    merged = {**(known.scratch if known is not None else {}), **change.values}
    kept = {name: value for name, value in merged.items() if value is not None}
    size = scratch_size(kept)
    if size > SCRATCH_LIMIT:
        message = (
            f"the scratch of {run.id} would have {size:,} bytes, and at most {SCRATCH_LIMIT:,} are kept;"
            " keep long texts in a file or an output, and their place here"
        )
        return Refused(why=Why.TOO_LARGE, message=message, run_id=run.id)
    return Applied(rows=(WorkflowScratch(run_id=run.id, scratch=kept),), run_id=run.id)


def raise_limits(change: RaiseRun, rows: Rows) -> Answer:
    """Set new maxima of the run; its jobs read them when they meet a limit."""
    run = _open_run(change.run_id, rows)
    if isinstance(run, Refused):
        return run
    raised = replace(run, limits={**run.limits, **change.limits}, updated_at=change.at)
    return Applied(rows=(raised,), run_id=run.id)


def override(change: OverrideWorkflow, rows: Rows) -> Answer:
    """Switch a workflow on or off; without either, its override is deleted."""
    known = rows.get(WorkflowOverride, change.name)
    if change.enabled is None:
        return Applied(rows=(), deleted=() if known is None else (known,))
    if known is not None and known.enabled is change.enabled:
        return Applied(rows=())
    row = WorkflowOverride(
        name=change.name, enabled=change.enabled, updated_at=change.at, updated_by=change.by
    )
    return Applied(rows=(row,))


def _node_above(run: WorkflowRun, rows: Rows) -> tuple[Row, ...]:
    """The node that started the run, now that it runs."""
    node = rows.get(WorkflowNode, run.parent_node_id) if run.parent_node_id is not None else None
    if node is None or run.status is not RunStatus.RUNNING or node.has_ended:
        return ()
    return (moved(node, NodeStatus.RUNNING, run.started_at),)


def _open_run(run_id: RunId, rows: Rows) -> WorkflowRun | Refused:
    """The run, or why nothing about it can be changed: there is none, or it is over."""
    run = rows.get(WorkflowRun, run_id)
    if run is None:
        return _missing(run_id)
    return _over(run) if run.is_terminal else run


def _over(run: WorkflowRun) -> Refused:
    message = f"run {run.id} {run.status.phrase}"
    return Refused(why=Why.STATUS, message=message, run_id=run.id)


def _missing(run_id: RunId) -> Refused:
    return Refused(why=Why.MISSING, message=f"there is no run {run_id}")
