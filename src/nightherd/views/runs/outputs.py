"""The outputs of a run's phases, read when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from nightherd.errors import InvalidValueError, NotFoundError, RefusedError
from nightherd.model.workflows.conductor.pinned import read_pinned
from nightherd.model.workflows.conductor.run_records import parse_answer, schema_of
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.instance import SEGMENT, Instance, locate, top_level
from nightherd.model.workflows.node import NodeKey, NodeKind
from nightherd.model.workflows.records import Records
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader


class OutputDocument(TypedDict):
    """The output of a phase: text, or a JSON value."""

    phase: str
    output: Any


def definition_of(reader: StateReader, run: WorkflowRun) -> WorkflowDefinition | None:
    """Return what the run runs; None for a run that came from elsewhere without it."""
    pinned = reader.find_pinned(run.definition_hash) if run.definition_hash else None
    return None if pinned is None else read_pinned(pinned.body).definition


def get_definition(reader: StateReader, run: WorkflowRun) -> WorkflowDefinition:
    """Return what the run runs; `NotFoundError` for a run that came from elsewhere without it."""
    definition = definition_of(reader, run)
    if definition is None:
        step = NextStep(Action.SHOW_RUN, run=run.id)
        raise NotFoundError(f"run {run.id} was imported without its definition", next_step=step)
    return definition


def output_of(reader: StateReader, run: WorkflowRun, path: str) -> Any:
    """Return the output of a phase: a JSON value, or None when it has none.

    `path` names the phase as `runs show` does: `plan`, `each[0]`, `fix_loop[2]/review`. `NotFoundError` for a
    phase that the workflow does not have, `RefusedError` for one that has not ended.
    """
    definition = definition_of(reader, run)
    step = NextStep(Action.SHOW_RUN, run=run.id)
    if definition is None:
        return _output_of_node(reader, run, path)
    try:
        instance = instance_at(definition, path)
    except InvalidValueError as error:
        message = f"{run.workflow_name} has no phase {path!r}"
        raise NotFoundError(message, next_step=step) from error
    records = _Outputs(reader, run, definition).records()
    node = records.node(instance)
    if node is None or not node.has_ended:
        stands = "has not begun" if node is None else f"is {node.status}"
        raise RefusedError(f"{path} of run {run.id} {stands}; it has no output", next_step=step)
    return records.output(instance)


def _output_of_node(reader: StateReader, run: WorkflowRun, path: str) -> Any:
    """The output of the last attempt of a phase, in a run that came from elsewhere without a definition."""
    nodes = [node for node in reader.nodes_of_run(run.id) if node.path == path]
    if not nodes:
        step = NextStep(Action.SHOW_RUN, run=run.id)
        raise NotFoundError(f"run {run.id} has no phase {path!r}", next_step=step)
    last = max(nodes, key=lambda node: node.attempt)
    return _Outputs(reader, run, None).output(last.key)


def instance_at(definition: WorkflowDefinition, path: str) -> Instance:
    """Return the place that a path names; `InvalidValueError` when there is none."""
    head, slash, last = path.rpartition("/")
    match = SEGMENT.fullmatch(last)
    if match is None:
        raise InvalidValueError(f"{path!r} is not the path of a phase")
    instance = locate(definition.phases, NodeKey(f"{head}{slash}{match[1]}"))
    numbers = [int(number) for number in match.groups()[1:] if number is not None]
    if numbers and instance.phase.for_each is not None:
        instance = instance.of_item(numbers.pop(0))
    if numbers and instance.phase.loop is not None:
        instance = instance.of_iteration(numbers.pop(0))
    if numbers:
        raise InvalidValueError(f"{path!r} has more numbers than the phase has")
    return instance


class _Outputs:
    """The nodes of a run and what they gave, as a reader finds them."""

    def __init__(
        self, reader: StateReader, run: WorkflowRun, definition: WorkflowDefinition | None
    ) -> None:
        self._reader = reader
        self._definition = definition
        self._rows = {node.key: node for node in reader.nodes_of_run(run.id)}

    def records(self) -> Records:
        """Return the records as decisions read them."""
        nodes = {key: node.as_node(self._items(node)) for key, node in self._rows.items()}
        return Records(nodes=nodes, outputs=self.output)

    def _items(self, node: WorkflowNode) -> tuple[Any, ...] | None:
        items = self._content(node).get("items") if node.kind is NodeKind.GROUP else None
        return None if items is None else tuple(items)

    def _content(self, node: WorkflowNode) -> Mapping[str, Any]:
        texts = self._reader.find_node_texts(node.id)
        return {} if texts is None else texts.content

    def output(self, key: NodeKey) -> Any:
        """Return what a node gave: a JSON value, None when there is none."""
        node = self._rows[key]
        if node.kind is NodeKind.JOB and node.job_id is not None:
            texts = self._reader.find_texts(node.job_id)
            text = None if texts is None else texts.summary
            if text is None or self._definition is None:
                return text
            if schema_of(self._definition, key) is None:
                return text
            return parse_answer(text)[0]
        if node.kind is NodeKind.CHILD and node.child_run_id is not None:
            return outputs_of(self._reader, node.child_run_id)
        return self._content(node).get("output")


def outputs_of(reader: StateReader, run_id: RunId) -> dict[str, Any] | None:
    """Return the outputs of a run's phases by name; None when it, or its definition, is not on record."""
    run = reader.find_run(run_id)
    definition = None if run is None else definition_of(reader, run)
    if run is None or definition is None:
        return None
    records = _Outputs(reader, run, definition).records()
    return {place.phase.name: records.output(place) for place in top_level(definition.phases)}
