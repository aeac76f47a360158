"""Changes of workflow runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from nightherd.model.sessions.changes import ForkSession
from nightherd.model.workflows.rows import (
    PinnedWorkflow,
    WorkflowContext,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowRun,
)
from nightherd.model.workflows.run import RunId
from nightherd.model.workflows.triggers import WhenBusy


class StartRun(msgspec.Struct, frozen=True, kw_only=True):
    """Record a new run and begin it; with as many of its key as there may be, it is queued, dropped or replaces one.

    `kept` are nodes of an earlier run whose work it keeps, written for this run.
    """

    run: WorkflowRun
    context: WorkflowContext
    pinned: PinnedWorkflow
    max_runs: int | None = None
    when_busy: WhenBusy = WhenBusy.QUEUE
    kept: tuple[WorkflowNode, ...] = ()
    kept_texts: tuple[WorkflowNodeTexts, ...] = ()
    branches: tuple[ForkSession, ...] = ()
    """The sessions that `kept` nodes hand on, as they were when those nodes ended."""


class AdvanceRun(msgspec.Struct, frozen=True, kw_only=True):
    """Record what has become of the run's open nodes, and begin what follows. Twice is as good as once."""

    run_id: RunId
    at: datetime
    node_ids: tuple[str, ...] | None = None
    """The nodes that something has become of; None when any may be."""


class CancelRun(msgspec.Struct, frozen=True, kw_only=True):
    """End a run: what waits in it ends at once, what runs is cancelled."""

    run_id: RunId
    at: datetime
    reason: str = "cancelled"
    is_failure: bool = False
    """Whether it ends as failed."""


class SendEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Send an event to a run, for the wait that waits for it or will. The same key is the same event."""

    run_id: RunId
    name: str
    key: str
    at: datetime
    by: str
    payload: Any = None


class MergeScratch(msgspec.Struct, frozen=True, kw_only=True):
    """Set values of a run's scratch, each key on its own; null removes one."""

    run_id: RunId
    at: datetime
    values: Mapping[str, Any]


class RaiseRun(msgspec.Struct, frozen=True, kw_only=True):
    """Give a run more of its limits: new maxima, as a job keeps them."""

    run_id: RunId
    at: datetime
    limits: Mapping[str, int]


class OverrideWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """Switch a workflow on or off; with None, the file counts again."""

    name: str
    at: datetime
    by: str
    enabled: bool | None = None
