"""What has become of an open node: by its job, its gate's inbox item, its child run, its event, or the time."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.decisions.around import execution_of
from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox.item import InboxItem, InboxTexts, ItemStatus
from nightherd.model.jobs.job import Job, JobStatus, JobTexts, row_text
from nightherd.model.workflows.command import CUT_OFF, exit_code_of
from nightherd.model.workflows.conductor.run_records import parse_answer, schema_of
from nightherd.model.workflows.definition import (
    CommandAction,
    GateAction,
    GateKind,
    OnInterrupt,
    WorkflowDefinition,
)
from nightherd.model.workflows.instance import locate
from nightherd.model.workflows.json_schema import mismatches
from nightherd.model.workflows.node import NODE_LIFECYCLE, NodeKind, NodeStatus
from nightherd.model.workflows.rows import (
    WorkflowEvent,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowRun,
)
from nightherd.model.workflows.run import RunStatus

STATUS_OF_JOB = {
    JobStatus.PENDING: NodeStatus.WAITING,
    JobStatus.RUNNING: NodeStatus.RUNNING,
    JobStatus.SUSPENDED: NodeStatus.PAUSED,
    JobStatus.COMPLETED: NodeStatus.SUCCEEDED,
    JobStatus.FAILED: NodeStatus.FAILED,
    JobStatus.CANCELLED: NodeStatus.CANCELLED,
}
STATUS_OF_RUN = {
    RunStatus.QUEUED: NodeStatus.WAITING,
    RunStatus.RUNNING: NodeStatus.RUNNING,
    RunStatus.PAUSED: NodeStatus.PAUSED,
    RunStatus.SUCCEEDED: NodeStatus.SUCCEEDED,
    RunStatus.FAILED: NodeStatus.FAILED,
    RunStatus.CANCELLED: NodeStatus.CANCELLED,
}
ENDED = frozenset(
    {NodeStatus.SUCCEEDED, NodeStatus.FAILED, NodeStatus.SKIPPED, NodeStatus.CANCELLED}
)
REJECTED = "rejected"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A node as it stands now, with what is to be written beside it."""

    node: WorkflowNode
    texts: WorkflowNodeTexts | None = None
    event: WorkflowEvent | None = None
    """The event that it took."""


def outcome_of(
    node: WorkflowNode,
    definition: WorkflowDefinition,
    at: datetime,
    rows: Rows,
    taken: Container[str] = (),
) -> Outcome | None:
    """Return how the node stands by what it is waiting for; None when it stands as its row says.

    `taken` has the ids of events that other nodes take in the same decision.
    """
    match node.kind:
        case NodeKind.JOB | NodeKind.UNTIL:
            return _of_job(node, definition, at, rows)
        case NodeKind.GATE:
            return _of_gate(node, definition, at, rows)
        case NodeKind.CHILD:
            return _of_child(node, at, rows)
        case NodeKind.WAIT:
            return _of_wait(node, at, rows, taken)
        case _:
            return _of_time(node, at)


def moved(node: WorkflowNode, status: NodeStatus, at: datetime, **fields: Any) -> WorkflowNode:
    """Return the node with another status."""
    ended_at = at if status in ENDED else None
    checked = NODE_LIFECYCLE.check(node.status, status) if status is not node.status else status
    return replace(node, status=checked, ended_at=ended_at, **fields)


def _of_job(
    node: WorkflowNode, definition: WorkflowDefinition, at: datetime, rows: Rows
) -> Outcome | None:
    job = rows.get(Job, node.job_id) if node.job_id is not None else None
    if job is None:
        return None
    status = STATUS_OF_JOB[job.status]
    if status not in ENDED:
        return None if status is node.status else Outcome(node=moved(node, status, at))
    execution = execution_of(job, rows)
    fields: dict[str, Any] = {
        "exit_code": exit_code_of(None if execution is None else execution.stop_reason),
        "error": job.error if status is not NodeStatus.SUCCEEDED else None,
    }
    if status is NodeStatus.SUCCEEDED and node.kind is NodeKind.JOB:
        problem = _refused_answer(node, job, definition, rows)
        if problem is not None:
            status, fields["error"] = NodeStatus.FAILED, row_text(problem)
    if status is NodeStatus.FAILED and job.error_code in CUT_OFF:
        fields["is_final"] = not _may_run_again(node, definition)
    return Outcome(node=moved(node, status, at, **fields))


def _may_run_again(node: WorkflowNode, definition: WorkflowDefinition) -> bool:
    """Whether what was cut off, and may have done its work, may be repeated by `retries`."""
    action = locate(definition.phases, node.key).phase.action
    return not isinstance(action, CommandAction) or action.on_interrupt is OnInterrupt.RERUN


def _refused_answer(
    node: WorkflowNode, job: Job, definition: WorkflowDefinition, rows: Rows
) -> str | None:
    """Why the answer is not what the phase declares; None when it is."""
    schema = schema_of(definition, node.key)
    if schema is None:
        return None
    texts = rows.get(JobTexts, job.id)
    value, problem = parse_answer((texts.summary if texts is not None else None) or "")
    if problem is not None:
        return problem
    wrong = mismatches(schema, value)
    return None if not wrong else f"the answer does not match its schema: {'; '.join(wrong[:3])}"


def _of_gate(
    node: WorkflowNode, definition: WorkflowDefinition, at: datetime, rows: Rows
) -> Outcome | None:
    item = rows.get(InboxItem, node.item_id) if node.item_id is not None else None
    if item is None or item.is_pending:
        return None
    texts = rows.get(InboxTexts, item.id)
    reply = None if texts is None else texts.reply
    artifact = _artifact(texts)
    gate = locate(definition.phases, node.key).phase.action
    is_reply = isinstance(gate, GateAction) and gate.gate is GateKind.REPLY
    # In the order of the stored text: a prompt shows the same before and after a restart.
    output: dict[str, Any] = (
        {"artifact": artifact, "by": item.decided_by, "reply": reply or ""}
        if is_reply
        else {
            "approved": item.status is ItemStatus.APPROVED,
            "artifact": artifact,
            "by": item.decided_by,
            "comment": reply,
        }
    )
    kept = WorkflowNodeTexts(node_id=node.id, content={"output": output})
    said = f": {reply}" if reply else ""
    match item.status:
        case ItemStatus.APPROVED | ItemStatus.ANSWERED:
            return Outcome(node=moved(node, NodeStatus.SUCCEEDED, at), texts=kept)
        case ItemStatus.REJECTED:
            error = row_text(f"{REJECTED} by {item.decided_by}{said}")
        case ItemStatus.EXPIRED:
            error = "nobody answered in time"
        case _:
            cancelled = moved(node, NodeStatus.CANCELLED, at, error="the question was withdrawn")
            return Outcome(node=replace(cancelled, is_final=True), texts=kept)
    failed = moved(node, NodeStatus.FAILED, at, error=error, is_final=True)
    return Outcome(node=failed, texts=kept)


def _artifact(texts: InboxTexts | None) -> str | None:
    """The text of the artifact as the person left it."""
    if texts is None:
        return None
    left: Mapping[str, Any] = texts.input or {}
    text = left.get("artifact", texts.body.get("artifact"))
    return text if isinstance(text, str) else None


def _of_child(node: WorkflowNode, at: datetime, rows: Rows) -> Outcome | None:
    run = rows.get(WorkflowRun, node.child_run_id) if node.child_run_id is not None else None
    if run is None:
        return None
    status = STATUS_OF_RUN[run.status]
    if status is node.status:
        return None
    error = run.error if status in ENDED and status is not NodeStatus.SUCCEEDED else None
    return Outcome(node=moved(node, status, at, error=error))


def _of_wait(node: WorkflowNode, at: datetime, rows: Rows, taken: Container[str]) -> Outcome | None:
    if node.event is not None:
        for event in rows.events_of_run(node.run_id):
            is_free = event.node_id is None and event.id not in taken
            if event.name == node.event and is_free:
                texts = WorkflowNodeTexts(
                    node_id=node.id, content={"output": event.payload.get("payload")}
                )
                done = moved(node, NodeStatus.SUCCEEDED, at)
                return Outcome(node=done, texts=texts, event=replace(event, node_id=node.id))
    if node.due_at is None or node.due_at > at:
        return None
    if node.event is None:
        return Outcome(node=moved(node, NodeStatus.SUCCEEDED, at))
    error = f"the event {node.event} did not come in time"
    return Outcome(node=moved(node, NodeStatus.FAILED, at, error=error, is_final=True))


def _of_time(node: WorkflowNode, at: datetime) -> Outcome | None:
    if node.due_at is None or node.due_at > at:
        return None
    return Outcome(node=moved(node, NodeStatus.FAILED, at, error="timed out", is_final=True))
