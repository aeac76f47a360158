"""Steps: what follows from the state of a run, as values, and the node that each of them writes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.workflows.definition import Phase, UntilCommand, WorkflowDefinition
from nightherd.model.workflows.node import (
    Node,
    NodeKey,
    NodeKind,
    Nodes,
    NodeStatus,
    SkipCause,
)


class SubmitPhase(msgspec.Struct, frozen=True, kw_only=True):
    """Submit the job of an agent or a command."""

    key: NodeKey
    phase: Phase
    prompt: str = ""
    """Of an agent; values that other people wrote are marked in it."""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    stdin: str | None = None
    session_of: NodeKey | None = None
    """The node whose session it continues; None for a session of its own."""
    message: str | None = None
    """What people are told, if the phase says so."""


class OpenGate(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a person."""

    key: NodeKey
    phase: Phase
    summary: str
    file: str | None = None
    """Of an artifact that is a file: its path in the workspace."""
    text: str | None = None
    """Of an artifact that is a phase's output: that output."""
    message: str | None = None


class StartWait(msgspec.Struct, frozen=True, kw_only=True):
    """Wait. Exactly one of `duration`, `until` and `event` is set."""

    key: NodeKey
    phase: Phase
    duration: timedelta | None = None
    until: datetime | None = None
    event: str | None = None
    message: str | None = None


class StartChild(msgspec.Struct, frozen=True, kw_only=True):
    """Start a run of another workflow."""

    key: NodeKey
    phase: Phase
    workflow: str
    definition: WorkflowDefinition | None
    inputs: Mapping[str, Any]
    untrusted_inputs: frozenset[str] = frozenset()
    """Inputs that hold what other people wrote."""
    message: str | None = None


class RunUntilCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Run the command that decides whether a loop ends: it ends on exit code 0."""

    key: NodeKey
    phase: Phase
    command: UntilCommand
    env: Mapping[str, str]


class StartGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Begin a block, a loop, or a phase with `for_each`."""

    key: NodeKey
    phase: Phase
    items: tuple[Any, ...] | None = None
    """Of a `for_each`: kept in the node, and never evaluated again."""
    message: str | None = None


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Do not run a phase."""

    key: NodeKey
    phase: Phase
    cause: SkipCause
    reason: str


class Succeed(msgspec.Struct, frozen=True, kw_only=True):
    """End a group well. Its output is made from the nodes inside it whenever it is read."""

    key: NodeKey
    phase: Phase
    message: str | None = None


class Fail(msgspec.Struct, frozen=True, kw_only=True):
    """End a group with an error, or a phase that could not begin."""

    key: NodeKey
    phase: Phase
    error: str
    message: str | None = None


class Cancel(msgspec.Struct, frozen=True, kw_only=True):
    """End a node because its run is cancelled, or something inside it was."""

    key: NodeKey
    reason: str


Step = (
    SubmitPhase
    | OpenGate
    | StartWait
    | StartChild
    | RunUntilCommand
    | StartGroup
    | Skip
    | Succeed
    | Fail
    | Cancel
)

BEGINNINGS: Mapping[type[Any], tuple[NodeKind, NodeStatus]] = {
    SubmitPhase: (NodeKind.JOB, NodeStatus.WAITING),
    OpenGate: (NodeKind.GATE, NodeStatus.PAUSED),
    StartWait: (NodeKind.WAIT, NodeStatus.PAUSED),
    StartChild: (NodeKind.CHILD, NodeStatus.WAITING),
    RunUntilCommand: (NodeKind.UNTIL, NodeStatus.WAITING),
    StartGroup: (NodeKind.GROUP, NodeStatus.RUNNING),
}


def effect_of(step: Step, nodes: Nodes, at: datetime | None = None) -> Node:
    """Return the node as the step leaves it: what is to be recorded together with doing the step."""
    begun = nodes.get(step.key)
    node = begun or Node(key=step.key, status=NodeStatus.WAITING, kind=NodeKind.NONE)
    node = replace(node, at=at)
    match step:
        case Skip():
            return replace(
                node, status=NodeStatus.SKIPPED, cause=step.cause, error=step.reason, is_final=True
            )
        case Succeed():
            return replace(node, status=NodeStatus.SUCCEEDED)
        case Fail():
            return replace(node, status=NodeStatus.FAILED, error=step.error, is_final=True)
        case Cancel():
            return replace(node, status=NodeStatus.CANCELLED, error=step.reason, is_final=True)
        case StartGroup():
            return replace(node, kind=NodeKind.GROUP, status=NodeStatus.RUNNING, items=step.items)
        case _:
            kind, status = BEGINNINGS[type(step)]
            return replace(node, kind=kind, status=status)
