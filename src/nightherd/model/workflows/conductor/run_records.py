"""The records of one run, read from its rows: its nodes as decisions know them, and their outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nightherd.decoding import convert
from nightherd.errors import InvalidValueError
from nightherd.model.decisions.rows import Rows
from nightherd.model.jobs.job import JobTexts
from nightherd.model.json_text import parse_json
from nightherd.model.workflows.conductor.pinned import PinnedBody, read_pinned
from nightherd.model.workflows.definition import AgentAction, CommandAction, WorkflowDefinition
from nightherd.model.workflows.instance import locate, top_level
from nightherd.model.workflows.node import Node, NodeKey, NodeKind
from nightherd.model.workflows.records import Records
from nightherd.model.workflows.rows import (
    PinnedWorkflow,
    WorkflowContext,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowRun,
    items_in,
)
from nightherd.model.workflows.run import RunFacts, RunId
from nightherd.model.workflows.triggers import RunTrigger

FENCED = re.compile(r"\A```[a-zA-Z]*\n(.*)\n```\Z", re.DOTALL)

Read = Rows


def pinned_of(run: WorkflowRun, rows: Read) -> PinnedBody:
    """Return what the run runs."""
    pinned = rows.get(PinnedWorkflow, run.definition_hash)
    if pinned is None:
        raise LookupError(f"{run.id} has no definition on record")
    return read_pinned(pinned.body)


def read_context(run: WorkflowRun, rows: Read) -> tuple[dict[str, Any], RunTrigger]:
    """Return the inputs and the trigger that the run began with."""
    found = rows.get(WorkflowContext, run.id)
    context: Mapping[str, Any] = {} if found is None else found.context
    return dict(context.get("inputs", {})), trigger_from(context.get("trigger", {}))


def context_of(run_id: RunId, inputs: Mapping[str, Any], trigger: RunTrigger) -> WorkflowContext:
    """Return what a run begins with, to be recorded."""
    fields = {**to_json(trigger), "untrusted_inputs": sorted(trigger.untrusted_inputs)}
    return WorkflowContext(run_id=run_id, context={"inputs": dict(inputs), "trigger": fields})


def to_json(trigger: RunTrigger) -> dict[str, Any]:
    """Return the fields of a trigger as JSON values."""
    return dict(msgspec.to_builtins(trigger))


def trigger_from(fields: Mapping[str, Any]) -> RunTrigger:
    """Return the trigger that `context_of` recorded."""
    return convert(fields, RunTrigger)


def facts_of(run: WorkflowRun) -> RunFacts:
    """Return what decisions need to know about the run."""
    return RunFacts(
        id=run.id,
        workflow=run.workflow_name,
        started_at=run.started_at.isoformat(),
        attempt=run.attempt,
        status=run.status,
        is_cancelling=run.stopping is not None,
    )


class RunRecords:
    """The nodes of a run, and the outputs they have by their rows."""

    def __init__(self, run: WorkflowRun, definition: WorkflowDefinition, rows: Read) -> None:
        self._rows = rows
        self.definition = definition
        self._known = rows.run_nodes(run.id).copy()
        self.nodes = self._known.rows
        self.texts: dict[str, WorkflowNodeTexts] = {}
        """Texts that are not written yet."""

    def put(self, node: WorkflowNode, texts: WorkflowNodeTexts | None = None) -> None:
        """Go on as if the node were written so."""
        if texts is not None:
            self.texts[node.id] = texts
        before = self._known.nodes.get(node.key)
        items = before.items if before is not None and texts is None else items_in(texts)
        self._known.put(node, items)

    @property
    def as_nodes(self) -> dict[NodeKey, Node]:
        """The nodes as decisions know them."""
        return self._known.nodes

    def _content(self, node_id: str) -> Mapping[str, Any]:
        texts = self.texts.get(node_id) or self._rows.get(WorkflowNodeTexts, node_id)
        return {} if texts is None else texts.content

    def output(self, key: NodeKey) -> Any:
        """Return the output of a node that has ended: a JSON value, None when there is none."""
        node = self.nodes.get(key)
        if node is None:
            return None
        if node.kind is NodeKind.JOB and node.job_id is not None:
            texts = self._rows.get(JobTexts, node.job_id)
            return self._answer(key, None if texts is None else texts.summary)
        if node.kind is NodeKind.CHILD and node.child_run_id is not None:
            return run_output(node.child_run_id, self._rows)
        return self._content(node.id).get("output")

    def _answer(self, key: NodeKey, text: str | None) -> Any:
        if text is None or schema_of(self.definition, key) is None:
            return text
        value, problem = parse_answer(text)
        return None if problem is not None else value

    def records(self) -> Records:
        """Return the records as decisions read them."""
        return Records(nodes=dict(self.as_nodes), outputs=self.output)


def schema_of(definition: WorkflowDefinition, key: NodeKey) -> Mapping[str, Any] | None:
    """Return the JSON Schema of what the node gives; None for text."""
    action = locate(definition.phases, key).phase.action
    return action.output if isinstance(action, AgentAction | CommandAction) else None


def parse_answer(text: str) -> tuple[Any, str | None]:
    """Return the JSON value of an answer, which may stand in a code fence; and why it is none."""
    stripped = text.strip()
    fenced = FENCED.match(stripped)
    try:
        return parse_json(stripped if fenced is None else fenced[1]), None
    except InvalidValueError as error:
        return None, f"the answer is not JSON: {error.message}"


def run_output(run_id: RunId, rows: Read) -> dict[str, Any] | None:
    """Return the outputs of a run's phases by name; None when there is no such run."""
    run = rows.get(WorkflowRun, run_id)
    if run is None:
        return None
    definition = pinned_of(run, rows).definition
    records = RunRecords(run, definition, rows).records()
    return {place.phase.name: records.output(place) for place in top_level(definition.phases)}


def open_nodes(nodes: Iterable[WorkflowNode]) -> list[WorkflowNode]:
    """Return the nodes that have not ended, in the order of beginning."""
    found = [node for node in nodes if node.ended_at is None]
    return sorted(found, key=lambda node: node.number)
