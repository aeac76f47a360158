"""Runs of Last Light with their context, scratch, phases and approvals. None of them continues here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from nightherd.engine.imports.foreign_runs import ForeignApproval, ForeignRun
from nightherd.imports.lastlight_database import APPROVALS, RUNS, Tables
from nightherd.imports.lastlight_executions import Brief, ExecutionIndex, qualified
from nightherd.imports.lastlight_phases import OnBad, Plan, plan_phases
from nightherd.imports.lastlight_rows import Columns, Damage, Row, plain
from nightherd.imports.lines import check_agent, read_value
from nightherd.model.inbox.item import ItemKind, ItemStatus, Verdict
from nightherd.model.jobs.job import TriggerType
from nightherd.model.units import MicroUsd, format_size
from nightherd.model.workflows.rows import CONTEXT_LIMIT, SCRATCH_LIMIT
from nightherd.model.workflows.run import RUN_LIFECYCLE, RunStatus

NOT_OVER = "it was not over when it was imported"
MOST_RESTARTS = 1_000
ORDER = ("started_at", "id")
ACTORS: Mapping[str, TriggerType] = {
    "github": TriggerType.WEBHOOK,
    "slack": TriggerType.SLACK,
    "cron": TriggerType.SCHEDULE,
}
"""What started a run, by who did."""
DECIDED = {"approved": ItemStatus.APPROVED, "rejected": ItemStatus.REJECTED}


class Runs:
    """Reads runs as they are gone through. What can be imported is known from the start."""

    def __init__(self, tables: Tables, index: ExecutionIndex, damage: Damage) -> None:
        self._tables = tables
        self._index = index
        self._damage = damage
        self._approvals: dict[str, list[int]] = {}
        for place, found in tables.places(APPROVALS, ("created_at", "id", "workflow_run_id")):
            run_id = str(plain(found.values["workflow_run_id"]))
            self._approvals.setdefault(run_id, []).append(place)
        self.starts: dict[str, datetime] = {}
        """When each run began that can be imported."""
        self.nodes: dict[str, str] = {}
        """The phase of each execution of those runs."""
        for row in tables.rows(RUNS, ORDER):
            try:
                run = self._run(row, Damage.silent())
                self.starts[run.id] = run.started_at
                self.nodes |= self._plan(row, (), _ignore).nodes
            except ValueError:
                continue  # reported when its turn comes

    def runs(self) -> Iterator[ForeignRun]:
        """Yield every run, oldest first; then report the approvals that belong to none of them."""
        for row in self._tables.rows(RUNS, ORDER):
            try:
                yield self._run(row, self._damage)
            except ValueError as error:
                self._damage.row(row, error)
        for run, places in self._approvals.items():
            for place in places if run not in self.starts else ():
                orphan = self._tables.row(APPROVALS, place)
                if orphan is not None:
                    self._damage.skip(orphan, f"its run {run[:80]} is not imported")

    def _run(self, row: Row, damage: Damage) -> ForeignRun:
        columns = Columns(row)
        id, status = columns.text("id"), _status(columns)
        is_over = RUN_LIFECYCLE.is_terminal(status)
        briefs = self._index.runs.get(id, [])
        approvals = tuple(self._read_approvals(id, damage))
        updated_at = columns.at("updated_at")
        context = _json(columns, "context", row, damage)
        restarts = columns.find_count("restart_count") or 0
        if restarts > MOST_RESTARTS:
            raise ValueError(f"restart_count is more than {MOST_RESTARTS}")
        asked_by = next((one.requested_by for one in approvals if one.requested_by), None)

        def on_bad(name: str, value: Any, reason: str) -> None:
            damage.value(row, name, value, reason)

        return ForeignRun(
            id=id,
            source=f"{damage.file}: {row.record}",
            workflow=check_agent(columns.text("workflow_name")),
            trigger_id=columns.text("trigger_id"),
            trigger_type=_trigger(columns, briefs),
            status=status if is_over else RunStatus.CANCELLED,
            current_phase=columns.find_text("current_phase") or "",
            started_at=columns.at("started_at"),
            updated_at=updated_at,
            finished_at=columns.find_at("finished_at") or updated_at,
            repo=qualified(columns),
            issue_number=columns.find_count("issue_number"),
            restart_count=restarts,
            error=_error(context) if is_over else NOT_OVER,
            started_by=columns.find_text("triggered_by") or asked_by,
            context=_bounded_context(context, row, damage),
            scratch=_bounded_scratch(_json(columns, "scratch", row, damage), row, damage),
            phases=self._plan(row, approvals, on_bad).phases,
            approvals=approvals,
            worked_ms=sum(brief.worked_ms for brief in briefs),
            cost_microusd=MicroUsd(sum(brief.cost for brief in briefs)),
        )

    def _plan(self, row: Row, approvals: Sequence[ForeignApproval], on_bad: OnBad) -> Plan:
        columns = Columns(row)
        history, statuses = _value(columns, "phase_history"), _value(columns, "node_statuses")
        if not isinstance(history, list):
            raise ValueError("phase_history is not a list")  # noqa: TRY004 (a bad record, not a bad call)
        if not isinstance(statuses, dict | None):
            raise ValueError("node_statuses is not an object")  # noqa: TRY004
        briefs = self._index.runs.get(columns.text("id"), [])
        return plan_phases(history, statuses or {}, briefs, approvals, on_bad)

    def _read_approvals(self, run: str, damage: Damage) -> Iterator[ForeignApproval]:
        for place in self._approvals.get(run, ()):
            row = self._tables.row(APPROVALS, place)
            if row is None:
                continue
            try:
                yield _approval(Columns(row))
            except ValueError as error:
                damage.row(row, error)


def _ignore(name: str, value: Any, reason: str) -> None:
    """Nothing: it is reported when the run is imported."""


def _status(columns: Columns) -> RunStatus:
    word = columns.text("status")
    try:
        return RunStatus(word)
    except ValueError:
        raise ValueError(f"status is {word[:80]!r}, which is not known") from None


def _trigger(columns: Columns, briefs: Sequence[Brief]) -> TriggerType:
    """What started the run: who did, where that is known, else what its first execution says."""
    actor = columns.find_text("trigger_actor_type")
    if actor is not None:
        return ACTORS.get(actor, TriggerType.MANUAL)
    if columns.text("trigger_id").startswith("slack:"):
        return TriggerType.SLACK
    return next((brief.trigger for brief in briefs if brief.trigger), TriggerType.MANUAL)


def _value(columns: Columns, name: str) -> Any:
    """The JSON value of a column; None for null."""
    found = columns.raw(name)
    if found is None:
        return None
    if not isinstance(found, bytes):
        raise ValueError(f"{name} is not a text")  # noqa: TRY004 (a bad record, not a bad call)
    try:
        return read_value(found)
    except ValueError as error:
        raise ValueError(f"{name} is {error}") from None


def _json(columns: Columns, name: str, row: Row, damage: Damage) -> dict[str, Any] | None:
    """The JSON object of a column; None for null, and for one that is none, which is kept aside."""
    try:
        found = _value(columns, name)
    except ValueError as error:
        damage.value(row, name, columns.raw(name), str(error))
        return None
    if isinstance(found, dict | None):
        return found
    damage.value(row, name, columns.raw(name), "it is not a JSON object")
    return None


def _error(context: Mapping[str, Any] | None) -> str | None:
    """Why a run failed: it is recorded beside what the run began with."""
    error = (context or {}).get("error")
    return error if isinstance(error, str) else None


def _bounded_context(
    context: dict[str, Any] | None, row: Row, damage: Damage
) -> dict[str, Any] | None:
    if context is None or len(msgspec.json.encode(context)) <= CONTEXT_LIMIT:
        return context
    damage.value(row, "context", context, f"it is larger than {format_size(CONTEXT_LIMIT)}")
    return None


def _bounded_scratch(
    scratch: dict[str, Any] | None, row: Row, damage: Damage
) -> dict[str, Any] | None:
    """The scratch without its largest values, as many of them as it takes for the rest to fit."""
    if scratch is None:
        return None
    kept = dict(scratch)
    sizes = {name: len(msgspec.json.encode(value)) for name, value in kept.items()}
    limit = format_size(SCRATCH_LIMIT)
    while len(msgspec.json.encode(kept)) > SCRATCH_LIMIT:
        name = max(kept, key=sizes.__getitem__)
        reason = f"a scratch has at most {limit}, and this value {format_size(sizes[name])}"
        damage.value(row, f"scratch[{name}]", kept.pop(name), reason)
    return kept


def _approval(columns: Columns) -> ForeignApproval:
    is_reply = columns.text("kind") == "reply"
    word = columns.text("status")
    if word not in (*DECIDED, "pending"):
        raise ValueError(f"status is {word[:80]!r}, which is not known")
    status = DECIDED.get(word, ItemStatus.CANCELLED)
    verdict = None
    if status is ItemStatus.APPROVED:
        verdict = Verdict.REPLY if is_reply else Verdict.APPROVE
        status = ItemStatus.ANSWERED if is_reply else status
    elif status is ItemStatus.REJECTED:
        verdict = Verdict.REJECT
    return ForeignApproval(
        id=columns.text("id"),
        gate=columns.text("gate"),
        summary=columns.find_text("summary") or "",
        kind=ItemKind.QUESTION if is_reply else ItemKind.APPROVAL,
        status=status,
        created_at=columns.at("created_at"),
        requested_by=columns.find_text("requested_by"),
        decided_at=columns.find_at("responded_at"),
        decided_by=columns.find_text("responded_by"),
        verdict=verdict,
        response=columns.find_text("response"),
        artifact=columns.find_text("artifact"),
    )
