"""What happens in a run, as people follow it: the events of its jobs, and the nodes that begin, wait and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.journal.event import Event, SystemEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.workflows.node import NodeKind, NodeStatus
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.next_step import SpellStep
from nightherd.ports import Journals, StateReader, Tail
from nightherd.views.jobs.events import event_document
from nightherd.views.jobs.jobs import own_job, timestamp
from nightherd.views.runs.runs import find_run
from nightherd.views.runs.waits import Wait, wait_of, wait_row

BEGAN = "began"
Now = Callable[[], datetime]


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened in a run: an event of a job, or a node that began, waits or ended."""

    at: datetime
    run_id: RunId
    phase: str
    """The path of the phase, that of the run above it first."""
    job_id: JobId | None = None
    event: Event | None = None
    status: str | None = None
    """`began`, or the status that the node has got; None for an event."""
    error: str | None = None
    message: str | None = None
    """What people are told about the phase."""
    wait: Wait | None = None
    kept_from: RunId | None = None
    """The run that did this work, when this run keeps it."""


class _Followed(msgspec.Struct):
    """The journal of a job, as far as it was read."""

    tail: Tail
    phase: str
    run_id: RunId
    latest: datetime | None = None


class RunFollower:
    """Reads what has happened in a run and the runs below it since the last look. Nothing is given twice."""

    def __init__(
        self, reader: StateReader, journals: Journals, run_id: RunId, now: Now, *, last: int | None
    ) -> None:
        self._reader = reader
        self._journals = journals
        self._run_id = run_id
        self._now = now
        self._last = last
        self._is_first = True
        self._known: dict[str, NodeStatus] = {}
        self._waits: dict[str, str] = {}
        self._followed: dict[JobId, _Followed] = {}
        self._done: set[JobId] = set()

    def poll(self) -> tuple[WorkflowRun, list[RunLine]]:
        """Return the run as it is, and what happened, first to last; of the past only the `last` so many.

        When the run is over, the lines are complete.
        """
        run = find_run(self._reader, self._run_id)
        lines = list(self._read_run(run, ""))
        lines += self._read_journals()
        lines.sort(key=_order)
        if self._is_first and self._last is not None:
            lines = lines[max(len(lines) - self._last, 0) :]
        self._is_first = False
        return run, lines

    def close(self) -> None:
        """Close the journals."""
        for followed in self._followed.values():
            followed.tail.close()
        self._followed.clear()

    def _read_run(self, run: WorkflowRun, prefix: str) -> Iterator[RunLine]:
        for node in self._reader.nodes_of_run(run.id):
            phase = prefix + node.id.removeprefix(f"{run.id}/")
            yield from self._changes(run, node, phase)
            if node.kept_from is not None:
                continue
            if node.job_id is not None:
                self._follow(node.job_id, phase, run.id)
            child = self._reader.find_run(node.child_run_id) if node.child_run_id else None
            if child is not None:
                yield from self._read_run(child, f"{phase}/")

    def _changes(self, run: WorkflowRun, node: WorkflowNode, phase: str) -> Iterator[RunLine]:
        """The lines of a node whose status is another than at the last look."""
        before = self._known.get(node.id)
        self._known[node.id] = node.status
        about: dict[str, Any] = {"run_id": run.id, "phase": phase, "job_id": node.job_id}
        message = None if node.has_ended else node.message
        is_shown = node.kind is not NodeKind.GROUP or message is not None
        is_begun = node.kind is not NodeKind.NONE and is_shown and node.kept_from is None
        if before is None and is_begun:
            yield RunLine(at=node.created_at, status=BEGAN, message=message, **about)
        if node.status is NodeStatus.PAUSED:
            yield from self._paused(run, node, about, is_new=before is None)
        elif node.has_ended and before is not node.status:
            yield RunLine(
                at=node.ended_at or node.created_at,
                status=node.status.value,
                error=node.error,
                message=node.message,
                kept_from=node.kept_from,
                **about,
            )

    def _paused(
        self, run: WorkflowRun, node: WorkflowNode, about: dict[str, Any], *, is_new: bool
    ) -> Iterator[RunLine]:
        """A line for each thing that a node waits for."""
        job = self._reader.find_job(node.job_id) if node.job_id is not None else None
        wait = wait_of(
            self._reader,
            run,
            node,
            None if job is None else own_job(self._reader, job, self._now()),
            self._reader.find_item(node.item_id) if node.item_id is not None else None,
            self._reader.find_run(node.child_run_id) if node.child_run_id is not None else None,
        )
        if wait is None or self._waits.get(node.id) == wait.text:
            return
        self._waits[node.id] = wait.text
        at = node.created_at if is_new and job is None else run.updated_at
        yield RunLine(at=at, status=node.status.value, wait=wait, **about)

    def _follow(self, job_id: JobId, phase: str, run_id: RunId) -> None:
        if job_id not in self._followed and job_id not in self._done:
            tail = self._journals.follower(job_id, after=0)
            self._followed[job_id] = _Followed(tail=tail, phase=phase, run_id=run_id)

    def _read_journals(self) -> Iterator[RunLine]:
        for job_id, followed in list(self._followed.items()):
            is_over = False
            while events := followed.tail.poll():
                for event in events:
                    yield _line(job_id, followed, event, self._now)
                    is_over = is_over or _is_end(event)
            if is_over:
                followed.tail.close()
                del self._followed[job_id]
                self._done.add(job_id)


def _order(line: RunLine) -> tuple[datetime, int, int]:
    """What happened in one transaction comes from the inside out: what ended, then what began, then what waits."""
    if line.event is not None:
        return line.at, 0, 0
    if line.status == BEGAN:
        return line.at, 2, 0
    return (line.at, 1, -len(line.phase)) if line.wait is None else (line.at, 3, 0)


def _line(job_id: JobId, followed: _Followed, event: Event, now: Now) -> RunLine:
    """The line of an event; within a job, the order of the journal counts and not the clock."""
    at = event.timestamp or followed.latest or now()
    followed.latest = at if followed.latest is None else max(at, followed.latest)
    return RunLine(
        at=followed.latest,
        run_id=followed.run_id,
        phase=followed.phase,
        job_id=job_id,
        event=event,
    )


def _is_end(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END


def line_document(line: RunLine, spell: SpellStep | None = None) -> dict[str, Any]:
    """Return a line as plain data: an event as its journal has it, or the change of a node."""
    document: dict[str, Any] = {
        "run_id": line.run_id,
        "phase": line.phase,
        "job_id": line.job_id,
        "at": timestamp(line.at),
    }
    if line.event is not None:
        return {**document, "event": event_document(line.event)}
    return {
        **document,
        "status": line.status,
        "error": line.error,
        "message": line.message,
        "kept_from": line.kept_from,
        "waits_for": None if line.wait is None else wait_row(line.wait, spell),
    }
