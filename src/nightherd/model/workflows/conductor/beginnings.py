"""What begins: the rows and changes that carry out the steps of a decision."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from msgspec.structs import replace

from nightherd.model.inbox.changes import AskPerson
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
from nightherd.model.workflows.conductor.changes import StartRun
from nightherd.model.workflows.conductor.concurrency import concurrency_key
from nightherd.model.workflows.conductor.phase_jobs import Beginning, PhaseJobs
from nightherd.model.workflows.conductor.pinned import pin_part
from nightherd.model.workflows.conductor.run_records import context_of
from nightherd.model.workflows.definition import (
    GateAction,
    GateKind,
    Phase,
)
from nightherd.model.workflows.node import NO_ITEM, NO_ITERATION
from nightherd.model.workflows.rows import WorkflowNode, WorkflowNodeTexts, WorkflowRun
from nightherd.model.workflows.run import RunStatus, generate_run_id
from nightherd.model.workflows.steps import (
    OpenGate,
    RunUntilCommand,
    StartChild,
    StartGroup,
    StartWait,
    Step,
    SubmitPhase,
)
from nightherd.model.workflows.triggers import WhenBusy

IdT = TypeVar("IdT", bound=str)
JSON_ONLY = "Answer with one JSON value and nothing else. It must match this JSON Schema:"


class Beginnings(PhaseJobs, frozen=True, kw_only=True):
    """Carries out the steps of one decision about one run."""

    def begin(self, step: Step, node: WorkflowNode) -> Beginning:
        """Return what carries the step out; `node` is its row as far as the step itself says."""
        match step:
            case SubmitPhase():
                return self.submit(step, node)
            case RunUntilCommand():
                return self.ask_command(step, node)
            case OpenGate():
                return self._open_gate(step, node)
            case StartWait():
                return Beginning(node=replace(node, due_at=self._due(step), event=step.event))
            case StartChild():
                return self._start_child(step, node)
            case StartGroup():
                texts = None
                if step.items is not None:
                    texts = WorkflowNodeTexts(node_id=node.id, content={"items": step.items})
                return Beginning(node=self._with_deadline(node, step.phase), texts=texts)
            case _:
                return Beginning(node=node)

    def _due(self, step: StartWait) -> datetime | None:
        if step.duration is not None:
            return self.at + step.duration
        if step.until is not None:
            return step.until
        return None if step.phase.timeout is None else self.at + step.phase.timeout

    def _with_deadline(self, node: WorkflowNode, phase: Phase) -> WorkflowNode:
        """Return the node with the end of its phase's timeout, if it is the whole phase."""
        is_whole = node.item == NO_ITEM and node.iteration == NO_ITERATION
        if phase.timeout is None or not is_whole:
            return node
        return replace(node, due_at=self.at + phase.timeout)

    def _open_gate(self, step: OpenGate, node: WorkflowNode) -> Beginning:
        gate = step.phase.action
        if not isinstance(gate, GateAction):
            raise TypeError(f"{node.id} is no gate")
        key = f"gate:{node.id}"
        given = (gate.expires, step.phase.timeout)
        expires = min((one for one in given if one is not None), default=None)
        body: dict[str, Any] = {
            "summary": step.summary,
            "workflow": self.run.workflow_name,
            "gate": node.path,
            "question": step.summary,
        }
        if gate.artifact is not None:
            body["artifact_kind"] = gate.artifact.kind.value
        if step.text is not None:
            body["artifact"] = step.text
        if step.file is not None:
            body["file"] = step.file
        shown = json.dumps([step.summary, step.text, step.file], ensure_ascii=False)
        summary = " ".join(step.summary.split()) or step.phase.label or step.phase.name
        item = InboxItem(
            id=item_id(key),
            kind=ItemKind.QUESTION if gate.gate is GateKind.REPLY else ItemKind.APPROVAL,
            status=ItemStatus.PENDING,
            created_at=self.at,
            subject=self.run.id,
            title=shorten(summary, TITLE_LIMIT),
            dedupe_key=key,
            hash=sha256(shown.encode(errors="surrogatepass")).hexdigest(),
            schedule=None,
            quorum=gate.quorum,
            expires_at=None if expires is None else self.at + expires,
            workflow_run_id=self.run.id,
            node_id=node.id,
        )
        terms: dict[str, Any] = {}
        if gate.approvers:
            terms["approvers"] = list(gate.approvers)
        if gate.remind:
            terms["remind_s"] = [span.total_seconds() for span in gate.remind]
        texts = InboxTexts(item_id=item.id, body=body, terms=terms)
        change = AskPerson(asked=(Asked(item=item, texts=texts),))
        return Beginning(node=replace(node, item_id=item.id), then=change)

    def _start_child(self, step: StartChild, node: WorkflowNode) -> Beginning:
        if step.definition is None:
            raise TypeError(f"{node.id} starts a workflow that is not pinned")
        run_id = self.free_id(WorkflowRun, node, partial(generate_run_id, self.at))
        trigger = replace(self.trigger, untrusted_inputs=step.untrusted_inputs)
        child = WorkflowRun(
            id=run_id,
            workflow_name=step.workflow,
            trigger_id=self.run.trigger_id,
            trigger_type=self.run.trigger_type,
            status=RunStatus.QUEUED,
            current_phase="",
            started_at=self.at,
            updated_at=self.at,
            repo=self.run.repo,
            issue_number=self.run.issue_number,
            concurrency_key=concurrency_key(step.definition, step.inputs, trigger),
            root_run_id=self.run.root,
            parent_run_id=self.run.id,
            parent_node_id=node.id,
            started_by=self.run.started_by,
        )
        concurrency = step.definition.concurrency
        change = StartRun(
            run=child,
            context=context_of(run_id, step.inputs, trigger),
            pinned=pin_part(self.body, step.definition, self.at),
            max_runs=concurrency.max_runs,
            # A sub-workflow that were dropped would be a failure nobody asked for.
            when_busy=WhenBusy.QUEUE
            if concurrency.when_busy is WhenBusy.DROP
            else concurrency.when_busy,
        )
        begun = replace(self._with_deadline(node, step.phase), child_run_id=run_id)
        return Beginning(node=begun, then=change)
