"""A run of a workflow by `advance`, with jobs that end in any order, kills and duplicates."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from model.workflows.reference_run import Key, Outcomes
from nightherd.model.workflows.advance import Decision, advance
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.instance import locate
from nightherd.model.workflows.node import NODE_LIFECYCLE, Node, NodeKey, NodeKind, NodeStatus
from nightherd.model.workflows.run import RUN_LIFECYCLE, RunFacts, RunId, RunStatus
from nightherd.model.workflows.steps import (
    Cancel,
    Fail,
    Step,
    SubmitPhase,
    Succeed,
    effect_of,
)
from nightherd.model.workflows.triggers import RunTrigger

ENDINGS = (Succeed, Fail, Cancel)
NODES = msgspec.json.Decoder(list[Node])


@dataclass
class SimulatedRun:
    """Records what `advance` decides, as the engine does, and ends nodes by a table of outcomes."""

    definition: WorkflowDefinition
    inputs: dict[str, Any]
    outcomes: Outcomes
    run: RunFacts = RunFacts(id=RunId("run-2026-03-01-aaaaaa"), workflow="w")  # noqa: RUF009
    trigger: RunTrigger = RunTrigger()  # noqa: RUF009
    nodes: dict[NodeKey, Node] = field(default_factory=dict)
    recorded: dict[NodeKey, Any] = field(default_factory=dict)
    prompts: dict[Key, str] = field(default_factory=dict)
    error: str | None = None

    def decide(self) -> Decision:
        return advance(
            self.definition, self.inputs, self.trigger, self.run, self.nodes, self.recorded.get
        )

    def advance(self) -> Decision:
        """Decide and record, in one transaction."""
        decision = self.decide()
        for step in decision.steps:
            self.record(step)
        if decision.run_status is not self.run.status:
            RUN_LIFECYCLE.check(self.run.status, decision.run_status)
            self.run = msgspec.structs.replace(self.run, status=decision.run_status)
        self.error = decision.error
        return decision

    def record(self, step: Step) -> None:
        before = self.nodes.get(step.key)
        node = effect_of(step, self.nodes)
        if before is None:
            assert not isinstance(step, Succeed), step
        else:
            # What has begun is never begun again, and what has ended stays as it is.
            assert isinstance(step, ENDINGS), step
            NODE_LIFECYCLE.check(before.status, node.status)
        if isinstance(step, SubmitPhase):
            self.prompts[plain(step.key)] = step.prompt
        self.nodes[step.key] = node

    def open_nodes(self) -> list[NodeKey]:
        """What a job, a person, a clock or a child run can end."""
        return [
            key
            for key, node in self.nodes.items()
            if not node.has_ended and node.kind is not NodeKind.GROUP
        ]

    def begin(self, key: NodeKey) -> None:
        node = self.nodes[key]
        if node.status is NodeStatus.WAITING:
            self.nodes[key] = msgspec.structs.replace(node, status=NodeStatus.RUNNING)

    def end(self, key: NodeKey) -> None:
        """End a node as the table says; one that has ended already stays as it is."""
        node = self.nodes[key]
        if node.has_ended:
            return
        outcome = self.outcomes(plain(key))
        self.recorded[key] = outcome.output
        self.nodes[key] = msgspec.structs.replace(
            node,
            status=NodeStatus(outcome.status),
            exit_code=outcome.exit_code,
            is_final=outcome.is_final,
            error=None if outcome.status == "succeeded" else outcome.status,
        )

    def restart(self) -> None:
        """Keep only what is recorded, as it comes back from JSON."""
        nodes = NODES.decode(msgspec.json.encode(list(self.nodes.values())))
        self.nodes = {node.key: node for node in nodes}

    def outcome_of_nodes(self) -> dict[Key, str]:
        return {
            plain(key): f"skipped: {node.cause}" if node.cause is not None else node.status.value
            for key, node in self.nodes.items()
        }


def plain(key: NodeKey) -> Key:
    return (key.path, key.iteration, key.item, key.attempt)


def check_now(run: SimulatedRun) -> None:
    """What must hold after every decision."""
    again = run.decide()
    assert again.steps == ()
    assert again.run_status is run.run.status
    open_nodes = [run.nodes[key] for key in run.open_nodes()]
    if not RUN_LIFECYCLE.is_terminal(run.run.status):
        assert open_nodes, "a run that has not ended waits for something"
        is_paused = all(node.status is NodeStatus.PAUSED for node in open_nodes)
        assert (run.run.status is RunStatus.PAUSED) is is_paused
    else:
        assert all(node.has_ended for node in run.nodes.values())
    for key, node in run.nodes.items():
        for_each = locate(run.definition.phases, key).phase.for_each
        if node.items is not None and for_each is not None:
            assert open_items(run, key) <= for_each.max_parallel


def open_items(run: SimulatedRun, key: NodeKey) -> int:
    return len(
        {
            other.item
            for other, node in run.nodes.items()
            if other.path == key.path and other.item >= 0 and not node.has_ended
        }
    )


def to_the_end(run: SimulatedRun, random: Random) -> None:
    """End nodes in a random order, with kills before and after each transaction and duplicates."""
    run.advance()
    check_now(run)
    while not RUN_LIFECYCLE.is_terminal(run.run.status):
        some_step(run, random)
        run.advance()
        check_now(run)


def some_step(run: SimulatedRun, random: Random) -> None:
    waiting = run.open_nodes()
    for key in random.sample(waiting, random.randint(1, min(3, len(waiting)))):
        run.begin(key)
        if random.random() < 0.2:
            run.advance()  # a job that begins decides nothing
        run.end(key)
        if random.random() < 0.2:
            run.end(key)
    if random.random() < 0.2:
        run.decide()  # killed before the transaction: what was decided is lost
    if random.random() < 0.2:
        run.restart()
