"""Node: one instance of a phase in a run, and where it stands. The nodes of a run are the truth about it.

A key names the instance: the path of the phase, and which iteration, item and attempt of it. The path has the
iterations and items of the blocks around it in brackets, the item first: `fix_loop[2]/review`, `each[0]/check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from nightherd.model.lifecycle import Lifecycle

NO_ITERATION = 0
"""Iterations count from 1; this is the phase itself, or an item of it."""
NO_ITEM = -1
"""Items count from 0."""
UNTIL = ":until"
"""Ends the path of a loop's `until_command`."""


class NodeKey(msgspec.Struct, frozen=True, order=True):
    """Which instance of which phase."""

    path: str
    iteration: int = NO_ITERATION
    item: int = NO_ITEM
    attempt: int = 1

    def __str__(self) -> str:
        attempt = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        return f"{self.path}{brackets(self.iteration, self.item)}{attempt}"

    @property
    def inside(self) -> str:
        """How the paths of the phases inside this block begin."""
        return f"{self.path}{brackets(self.iteration, self.item)}/"


def brackets(iteration: int, item: int) -> str:
    """Return the item and the iteration as paths have them."""
    first = "" if item == NO_ITEM else f"[{item}]"
    return first if iteration == NO_ITERATION else f"{first}[{iteration}]"


class NodeStatus(StrEnum):
    """Where a node stands."""

    WAITING = "waiting"
    """Its job is there and has not begun."""
    RUNNING = "running"
    PAUSED = "paused"
    """It waits for a person, a time or an event."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


_ENDED = frozenset(
    {NodeStatus.SUCCEEDED, NodeStatus.FAILED, NodeStatus.SKIPPED, NodeStatus.CANCELLED}
)
_DONE = frozenset({NodeStatus.SUCCEEDED, NodeStatus.FAILED, NodeStatus.CANCELLED})

NODE_LIFECYCLE = Lifecycle(
    "workflow node",
    {
        NodeStatus.WAITING: frozenset({NodeStatus.RUNNING, NodeStatus.PAUSED}) | _ENDED,
        NodeStatus.RUNNING: frozenset({NodeStatus.WAITING, NodeStatus.PAUSED}) | _DONE,
        NodeStatus.PAUSED: frozenset({NodeStatus.WAITING, NodeStatus.RUNNING}) | _DONE,
        **{status: frozenset() for status in _ENDED},
    },
)


class NodeKind(StrEnum):
    """What a node is."""

    JOB = "job"
    CHILD = "child"
    """A run of another workflow."""
    GATE = "gate"
    WAIT = "wait"
    GROUP = "group"
    """A block, a loop, or a phase with `for_each`: it ends when what is in it has ended."""
    UNTIL = "until"
    """The command that decides whether a loop ends."""
    NONE = "none"
    """Skipped, or failed before anything began."""


class SkipCause(StrEnum):
    """Why a phase did not run."""

    CONDITION = "condition"
    """Its `when` is false."""
    SKIPPED = "skipped"
    """A phase it depends on was skipped."""
    FAILED = "failed"
    """A phase it depends on failed, or did not run for that reason: Airflow's `upstream_failed`."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One instance of a phase."""

    key: NodeKey
    status: NodeStatus
    kind: NodeKind = NodeKind.JOB
    job_id: str | None = None
    """Its job, or its run when it is another workflow's."""
    items: tuple[Any, ...] | None = None
    """Of a `for_each`: the list as it was when the phase began."""
    exit_code: int | None = None
    """Of a command."""
    error: str | None = None
    """Why it failed or was skipped."""
    cause: SkipCause | None = None
    is_final: bool = False
    """Whether a failure is not worth a retry: it would fail the same way, or a person said no."""
    at: datetime | None = None
    """When its status was set."""

    @property
    def has_ended(self) -> bool:
        """Whether it has its outcome."""
        return self.status in _ENDED


Nodes = Mapping[NodeKey, Node]
