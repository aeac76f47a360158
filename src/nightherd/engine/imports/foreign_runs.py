"""Workflow runs of another tool, in the forms that `runs.py` records: executions, runs, gates and switches.

Ids are those of the other tool. What cannot be read is put on the report by the reader and kept as `Aside`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from nightherd.engine.imports.context import Unreadable
from nightherd.engine.imports.transcripts import ForeignFile
from nightherd.model.inbox.item import ItemKind, ItemStatus, Verdict
from nightherd.model.jobs.job import ExitReason, TriggerType
from nightherd.model.journal.event import Event
from nightherd.model.units import FREE, MicroUsd
from nightherd.model.usage import Usage
from nightherd.model.workflows.node import NodeStatus
from nightherd.model.workflows.run import RunStatus

Events = Callable[[Callable[[Unreadable], None]], Iterator[Event]]
"""Reads what was said when it is called; what could not be read is given to the argument."""


class ForeignExecution(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a phase, or one turn of a chat."""

    id: str
    source: str
    trigger_type: TriggerType
    trigger_id: str
    skill: str
    started_at: datetime
    exit_reason: ExitReason | None
    """How it ended; None when that is unknown: it was interrupted."""
    events: Events
    run: str | None = None
    node: str | None = None
    """The phase of the run, with its attempt."""
    session: str | None = None
    finished_at: datetime | None = None
    repo: str | None = None
    issue_number: int | None = None
    turns: int | None = None
    duration_ms: int | None = None
    api_duration_ms: int | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    """What it used, where its end does not say so itself."""
    output_text: str | None = None


class ForeignSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session with its executions, first to last; without an id, executions that were in none."""

    id: str | None
    executions: Iterable[ForeignExecution]
    source: str = ""
    name: str = ""
    working_directory: str = ""


class ForeignPhase(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a run's history, or a phase that has a status only."""

    path: str
    status: NodeStatus
    attempt: int = 1
    began_at: datetime | None = None
    """When its execution began, if it has one."""
    at: datetime | None = None
    """When it ended, if the history says so."""
    summary: str | None = None
    execution: str | None = None
    approval: str | None = None


class ForeignApproval(msgspec.Struct, frozen=True, kw_only=True):
    """What a person was asked by a run, and the answer."""

    id: str
    gate: str
    summary: str
    kind: ItemKind
    status: ItemStatus
    created_at: datetime
    requested_by: str | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    verdict: Verdict | None = None
    response: str | None = None
    artifact: str | None = None


class ForeignRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is over, or counts as over from its import on."""

    id: str
    source: str
    workflow: str
    trigger_id: str
    trigger_type: TriggerType
    status: RunStatus
    current_phase: str
    started_at: datetime
    updated_at: datetime
    finished_at: datetime
    repo: str | None = None
    issue_number: int | None = None
    restart_count: int = 0
    error: str | None = None
    started_by: str | None = None
    context: Mapping[str, Any] | None = None
    """None when there is none, or it was refused."""
    scratch: Mapping[str, Any] | None = None
    phases: tuple[ForeignPhase, ...] = ()
    approvals: tuple[ForeignApproval, ...] = ()
    worked_ms: int = 0
    cost_microusd: MicroUsd = FREE


class ForeignSwitch(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule or workflow that a person has switched off or on, or given another time."""

    name: str
    source: str
    enabled: bool
    updated_at: datetime
    updated_by: str | None = None
    schedule: str | None = None


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was not imported, exactly as it was."""

    name: str
    """Of the file that keeps it; the same for the same content."""
    content: bytes


class ForeignWorkflows(msgspec.Struct, frozen=True, kw_only=True):
    """Everything another tool left about its workflows. Each part is read while it is gone through."""

    tool: str
    run_starts: Mapping[str, datetime]
    """When each run began that can be imported."""
    files: Sequence[ForeignFile]
    """Event logs, of which raw copies are kept."""
    sessions: Iterable[ForeignSession]
    runs: Iterable[ForeignRun]
    schedules: Iterable[ForeignSwitch]
    workflows: Iterable[ForeignSwitch]
    asides: list[Aside]
    """Filled while the other parts are read, and emptied by the reader of this list."""
    total: int
    """Executions and runs."""
