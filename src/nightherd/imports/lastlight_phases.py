"""The phases of a run of Last Light: its history and its statuses as nodes, and the executions that belong to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.engine.imports.foreign_runs import ForeignApproval, ForeignPhase
from nightherd.imports.lastlight_executions import Brief
from nightherd.imports.lines import instant
from nightherd.model.workflows.node import NodeStatus

PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}")
"""Names that can be a whole phase's here: no separators of paths, and nothing that JSON would quote."""
WAITING_APPROVAL = "waiting_approval"
"""The phase that its history has for every gate."""
STATUSES: Mapping[str, NodeStatus] = {
    "succeeded": NodeStatus.SUCCEEDED,
    "failed": NodeStatus.FAILED,
    "skipped": NodeStatus.SKIPPED,
    "cancelled": NodeStatus.CANCELLED,
    "running": NodeStatus.CANCELLED,
    "paused": NodeStatus.CANCELLED,
    "pending": NodeStatus.SKIPPED,
}
"""What its statuses of nodes are here, where nothing continues: what ran is cancelled, what had not begun is skipped."""

OnBad = Callable[[str, Any, str], None]
"""Called with the name, the value and the reason of something that is no phase."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The phases of a run in their order, and the phase with its attempt of each execution."""

    phases: tuple[ForeignPhase, ...]
    nodes: Mapping[str, str]


def plan_phases(
    history: Sequence[Any],
    statuses: Mapping[str, Any],
    executions: Sequence[Brief],
    approvals: Sequence[ForeignApproval],
    on_bad: OnBad,
) -> Plan:
    """Return the phases of a run. Every entry of its history is one, so that the history reads the same."""
    phases = list(_history(history, on_bad))
    attempts: dict[int, tuple[int, Brief | None]] = {}
    nodes: dict[str, str] = {}
    labels = dict.fromkeys(
        [phase.path for phase in phases] + [brief.label for brief in executions if brief.label]
    )
    for label in labels:
        places = [place for place, phase in enumerate(phases) if phase.path == label]
        tries = [brief for brief in executions if brief.label == label]
        for attempt, (place, brief) in enumerate(_paired(places, phases, tries), 1):
            if place is not None:
                attempts[place] = (attempt, brief)
            if brief is not None and PATH.fullmatch(label):
                nodes[brief.id] = f"{label}#{attempt}" if attempt > 1 else label
    planned = [_attempt(phase, *attempts[place]) for place, phase in enumerate(phases)]
    with_gates = _with_approvals(planned, approvals)
    return Plan(phases=tuple(_with_statuses(with_gates, statuses, on_bad)), nodes=nodes)


def _history(history: Sequence[Any], on_bad: OnBad) -> Iterator[ForeignPhase]:
    for place, entry in enumerate(history):
        try:
            yield _entry(entry)
        except ValueError as error:
            on_bad(f"phase_history[{place}]", entry, str(error))


def _entry(entry: Any) -> ForeignPhase:
    fields = entry if isinstance(entry, dict) else {}
    name, at, success = fields.get("phase"), fields.get("timestamp"), fields.get("success")
    ended = instant(at if isinstance(at, str) else None)
    if not isinstance(name, str) or PATH.fullmatch(name) is None:
        raise ValueError("it names no phase that can be one here")
    if ended is None:
        raise ValueError("its timestamp is not a date and time")
    if not isinstance(success, bool):
        raise ValueError("it does not say whether the phase succeeded")  # noqa: TRY004 (a bad record)
    summary = fields.get("summary")
    return ForeignPhase(
        path=name,
        status=NodeStatus.SUCCEEDED if success else NodeStatus.FAILED,
        at=ended,
        summary=summary if isinstance(summary, str) else None,
    )


def _paired(
    places: Sequence[int], phases: Sequence[ForeignPhase], tries: Sequence[Brief]
) -> Iterator[tuple[int | None, Brief | None]]:
    """The attempts of one phase in order. An entry of the history is about the last try that began before it."""
    waiting = list(tries)
    for place in places:
        ended = phases[place].at
        begun = [brief for brief in waiting if ended is None or brief.started_at <= ended]
        for lost in begun[:-1]:
            yield None, lost
        yield place, begun[-1] if begun else None
        waiting = waiting[len(begun) :]
    for brief in waiting:
        yield None, brief


def _attempt(phase: ForeignPhase, attempt: int, brief: Brief | None) -> ForeignPhase:
    if brief is None:
        return replace(phase, attempt=attempt)
    return replace(phase, attempt=attempt, execution=brief.id, began_at=brief.started_at)


def _with_approvals(
    phases: Sequence[ForeignPhase], approvals: Sequence[ForeignApproval]
) -> list[ForeignPhase]:
    """The entries about gates with the approvals they were about, in the order of both."""
    asked = iter(approvals)
    found: list[ForeignPhase] = []
    for phase in phases:
        approval = next(asked, None) if phase.path == WAITING_APPROVAL else None
        found.append(phase if approval is None else replace(phase, approval=approval.id))
    return found


def _with_statuses(
    phases: Sequence[ForeignPhase], statuses: Mapping[str, Any], on_bad: OnBad
) -> Iterator[ForeignPhase]:
    """The history with the statuses that the run had for its phases; then those of which there is no history."""
    known: dict[str, NodeStatus] = {}
    for name, value in statuses.items():
        word = value.get("status") if isinstance(value, dict) else value
        status = STATUSES.get(word) if isinstance(word, str) else None
        if status is None or PATH.fullmatch(name) is None:
            on_bad(f"node_statuses[{name}]", value, "it is not the status of a phase")
        else:
            known[name] = status
    last = {phase.path: place for place, phase in enumerate(phases)}
    for place, phase in enumerate(phases):
        status = known.pop(phase.path, None) if last[phase.path] == place else None
        if status is None or status is phase.status:
            yield phase
        elif (status is NodeStatus.SUCCEEDED) is (phase.status is NodeStatus.SUCCEEDED):
            yield replace(phase, status=status)
        else:
            on_bad(f"node_statuses[{phase.path}]", status.value, "its history says otherwise")
            yield phase
    for name, status in known.items():
        yield ForeignPhase(path=name, status=status)
