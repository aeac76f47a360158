"""The rows of an imported run: the run, what it began with, its scratch, its nodes, and what people were asked.

An imported run has no definition: it can be looked at, and neither retried nor forked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from nightherd.engine.imports.context import ImportContext
from nightherd.engine.imports.foreign_runs import ForeignApproval, ForeignPhase, ForeignRun
from nightherd.engine.imports.jobs import mask
from nightherd.model.change import Row
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import (
    TITLE_LIMIT,
    InboxAnswer,
    InboxItem,
    InboxTexts,
    ItemId,
    ItemStatus,
    item_id,
)
from nightherd.model.jobs.job import row_text
from nightherd.model.text import shorten
from nightherd.model.workflows.conductor.run_records import context_of
from nightherd.model.workflows.node import NodeKey, NodeKind
from nightherd.model.workflows.rows import (
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowRun,
    WorkflowScratch,
    node_id,
)
from nightherd.model.workflows.run import RunId
from nightherd.model.workflows.triggers import RunTrigger

LAST_OUTPUT = "lastOutputExecutionId"
"""The key under which a loop's scratch names the execution whose `output_text` is its last output."""
UNKNOWN = "unknown"
"""Who answered, where nobody recorded it."""


def run_rows(
    run_id: RunId,
    key: str,
    run: ForeignRun,
    jobs: Mapping[str, JobId],
    tool: str,
    context: ImportContext,
) -> list[Row]:
    """Return every row of a run but those of its gates; `jobs` are the jobs of its executions."""
    rows: list[Row] = [
        WorkflowRun(
            id=run_id,
            workflow_name=run.workflow,
            trigger_id=mask(run.trigger_id, context) or "",
            trigger_type=run.trigger_type,
            status=run.status,
            current_phase=run.current_phase,
            started_at=run.started_at,
            updated_at=run.updated_at,
            finished_at=run.finished_at,
            repo=run.repo,
            issue_number=run.issue_number,
            restart_count=run.restart_count,
            error=row_text(mask(run.error, context)),
            started_by=run.started_by,
            dedupe_key=key,
            worked_ms=run.worked_ms,
            cost_microusd=run.cost_microusd,
        )
    ]
    if run.context is not None:
        trigger = RunTrigger(
            type=run.trigger_type,
            id=mask(run.trigger_id, context) or "",
            actor=run.started_by,
            repo=run.repo,
            issue_number=run.issue_number,
            untrusted_inputs=frozenset(run.context),
        )
        rows.append(context_of(run_id, context.secrets.mask(run.context), trigger))
    if run.scratch is not None:
        scratch = context.secrets.mask(_with_executions(run.scratch, jobs))
        rows.append(WorkflowScratch(run_id=run_id, scratch=scratch))
    for number, phase in enumerate(run.phases, 1):
        rows += _node_rows(run_id, run, phase, number, jobs, tool, context)
    return rows


def _with_executions(value: Any, jobs: Mapping[str, JobId]) -> Any:
    """The value with references to executions by the ids that these have here."""
    if isinstance(value, list):
        return [_with_executions(one, jobs) for one in value]
    if not isinstance(value, Mapping):
        return value
    found = {name: _with_executions(one, jobs) for name, one in value.items()}
    last = found.get(LAST_OUTPUT)
    if isinstance(last, str) and last in jobs:
        found[LAST_OUTPUT] = f"{jobs[last]}.1"
    return found


def _node_rows(
    run_id: RunId,
    run: ForeignRun,
    phase: ForeignPhase,
    number: int,
    jobs: Mapping[str, JobId],
    tool: str,
    context: ImportContext,
) -> list[Row]:
    id = node_id(run_id, NodeKey(phase.path, attempt=phase.attempt))
    job = jobs.get(phase.execution) if phase.execution is not None else None
    kind = NodeKind.NONE
    if job is not None:
        kind = NodeKind.JOB
    elif phase.approval is not None:
        kind = NodeKind.GATE
    summary = mask(phase.summary, context)
    node = WorkflowNode(
        id=id,
        run_id=run_id,
        path=phase.path,
        status=phase.status,
        kind=kind,
        created_at=phase.began_at or phase.at or run.updated_at,
        attempt=phase.attempt,
        # Without an entry in the history there is no end: the history reads as it did.
        ended_at=phase.at,
        job_id=job,
        item_id=None if phase.approval is None else approval_id(tool, phase.approval),
        message=row_text(summary),
        number=number,
    )
    if summary is None:
        return [node]
    return [node, WorkflowNodeTexts(node_id=id, content={"output": summary})]


def approval_id(tool: str, approval: str) -> ItemId:
    """Return the id of the inbox item that is made from an approval."""
    return item_id(f"{tool}:approval:{approval}")


def approval_rows(
    run_id: RunId, run: ForeignRun, approval: ForeignApproval, tool: str, context: ImportContext
) -> list[Row]:
    """Return the inbox item of an approval, which is closed, and the answer to it."""
    id = approval_id(tool, approval.id)
    summary, reply = mask(approval.summary, context) or "", mask(approval.response, context)
    is_cancelled = approval.status is ItemStatus.CANCELLED
    at = run.finished_at if is_cancelled else approval.decided_at or run.updated_at
    by = None if is_cancelled else approval.decided_by or UNKNOWN
    body: dict[str, Any] = {
        "summary": summary,
        "workflow": run.workflow,
        "gate": approval.gate,
        "question": summary,
    }
    if approval.requested_by is not None:
        body["requested_by"] = approval.requested_by
    if approval.artifact is not None:
        body["file"] = approval.artifact
    shown = json.dumps([summary, None, approval.artifact], ensure_ascii=False)
    rows: list[Row] = [
        InboxItem(
            id=id,
            kind=approval.kind,
            status=approval.status,
            created_at=approval.created_at,
            subject=run_id,
            title=shorten(" ".join(summary.split()) or approval.gate, TITLE_LIMIT),
            dedupe_key=f"{tool}:approval:{approval.id}",
            hash=sha256(shown.encode(errors="surrogatepass")).hexdigest(),
            decided_at=at,
            decided_by=by,
            decided_via=None if is_cancelled else tool,
            verdict=approval.verdict,
            workflow_run_id=run_id,
            node_id=f"{run_id}/{approval.gate}",
        ),
        InboxTexts(item_id=id, body=body, reply=reply),
    ]
    if approval.verdict is not None:
        rows.append(
            InboxAnswer(
                id=f"{id}.1",
                item_id=id,
                at=at,
                by=by or UNKNOWN,
                via=tool,
                verdict=approval.verdict,
                text=reply,
            )
        )
    return rows
