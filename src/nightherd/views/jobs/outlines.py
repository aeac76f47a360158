"""A job's outline as one document of bounded size: its segments, errors, executions, gaps, children and checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypedDict

from nightherd.model.checkpoints.journal_checkpoints import firsts, removed
from nightherd.model.ids import JobId
from nightherd.model.index.outline import (
    Gap,
    Outline,
    OutlineCheckpoint,
    OutlineError,
    OutlineExecution,
    Segment,
)
from nightherd.model.index.standstill import CRASH, QUEUED
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.text import utc_text
from nightherd.model.units import MicroUsd, to_usd
from nightherd.ports import Outlines, StateReader
from nightherd.views.jobs.jobs import get_job, timestamp

MOST_CHILDREN = 200
"""How many of the jobs that a job has made are named."""


class SegmentRow(TypedDict):
    """Some steps of a job in a row."""

    first_seq: int
    last_seq: int
    start: str
    end: str
    kind: str
    label: str
    turn: int | None
    last_turn: int | None
    steps: int
    tools: int
    errors: int
    is_nested: bool


class OutlineErrorRow(TypedDict):
    """Something that failed."""

    seq: int
    at: str
    kind: str
    turn: int | None
    text: str


class OutlineExecutionRow(TypedDict):
    """One execution, from its first event to its last."""

    epoch: int
    worker: str
    first_seq: int
    last_seq: int
    start: str
    end: str
    outcome: str | None


class GapRow(TypedDict):
    """A time in which nothing worked on the job, and why."""

    reason: str
    start: str
    end: str | None
    after_seq: int
    before_seq: int | None
    text: str
    code: str | None
    until: str | None
    no_worker_until: str | None


class OutlineChildRow(TypedDict):
    """A job that the job has made."""

    id: str
    agent: str
    status: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    cost_usd: float


class OutlineCheckpointRow(TypedDict):
    """A checkpoint."""

    number: int
    seq: int
    at: str
    trigger: str
    turn: int
    cost_usd: float


class OutlineCounts(TypedDict):
    """How many of each there are in all, those that are not named included."""

    events: int
    turns: int
    messages: int
    prompts: int
    answers: int
    tool_calls: int
    errors: int
    denied: int
    executions: int
    gaps: int
    children: int
    checkpoints: int
    tools: dict[str, int]


class JobOutline(TypedDict):
    """The outline of a job."""

    job_id: str
    agent: str
    status: str
    first_seq: int
    last_seq: int
    first_at: str | None
    last_at: str | None
    span: int
    counts: OutlineCounts
    segments: list[SegmentRow]
    errors: list[OutlineErrorRow]
    executions: list[OutlineExecutionRow]
    gaps: list[GapRow]
    children: list[OutlineChildRow]
    checkpoints: list[OutlineCheckpointRow]


def outline_of_job(reader: StateReader, outlines: Outlines, job_id: JobId) -> JobOutline:
    """The outline of the job as its journal and its rows are now. Reads no more of a journal than is new in it."""
    job = get_job(reader, job_id)
    outline = outlines.outline(job_id)
    children = reader.jobs_of_parent(job_id)
    counts = outline.counts
    workers = {one.epoch: one.worker for one in outline.executions}
    gaps = [_gap_row(gap, workers, reader) for gap in (*outline.gaps, *_open(job, outline))]
    return JobOutline(
        job_id=job.id,
        agent=job.agent,
        status=job.status.value,
        first_seq=min(1, outline.last_seq),
        last_seq=outline.last_seq,
        first_at=timestamp(outline.first_at),
        last_at=timestamp(outline.last_at),
        span=outline.span,
        counts=OutlineCounts(
            events=counts.events,
            turns=counts.turns,
            messages=counts.messages,
            prompts=counts.prompts,
            answers=counts.answers,
            tool_calls=counts.tool_calls,
            errors=counts.errors,
            denied=counts.denied,
            executions=counts.executions,
            gaps=counts.gaps + len(gaps) - len(outline.gaps),
            children=len(children),
            checkpoints=counts.checkpoints,
            tools=dict(counts.tools),
        ),
        segments=[_segment_row(segment) for segment in outline.segments],
        errors=[_error_row(error) for error in outline.errors],
        executions=[_execution_row(execution) for execution in outline.executions],
        gaps=gaps,
        children=[_child_row(child) for child in children[:MOST_CHILDREN]],
        checkpoints=[_checkpoint_row(one) for one in _present(reader, job_id, outline)],
    )


def _open(job: Job, outline: Outline) -> Iterable[Gap]:
    """What the job waits for now: nothing while it runs, and once it has ended."""
    if not outline.executions:
        if job.status is JobStatus.RUNNING:
            return
        yield Gap(after_seq=0, start=job.created_at, end=job.finished_at, reason=QUEUED)
    elif outline.pause is not None:
        yield Gap(
            after_seq=outline.pause.after_seq,
            start=outline.pause.start,
            end=job.finished_at if job.is_terminal else None,
            reason=outline.pause.reason,
            text=outline.pause.text,
            code=outline.pause.code,
            until=outline.pause.until,
        )
    elif job.status is JobStatus.PENDING and outline.last_at is not None:
        yield Gap(after_seq=outline.last_seq, start=outline.last_at, reason=CRASH)


def _present(reader: StateReader, job_id: JobId, outline: Outline) -> Iterable[OutlineCheckpoint]:
    """The checkpoints that retention has not taken away."""
    speaking = firsts(reader.list_checkpoints(job_id))
    gone = {epoch: removed(row) for epoch, row in speaking.items()}
    return [
        one
        for one in outline.checkpoints
        if one.epoch in gone and one.number not in gone[one.epoch]
    ]


def _segment_row(segment: Segment) -> SegmentRow:
    return SegmentRow(
        first_seq=segment.first_seq,
        last_seq=segment.last_seq,
        start=utc_text(segment.start),
        end=utc_text(segment.end),
        kind=segment.kind,
        label=segment.label,
        turn=segment.turn,
        last_turn=segment.last_turn,
        steps=segment.steps,
        tools=segment.tools,
        errors=segment.errors,
        is_nested=segment.is_nested,
    )


def _error_row(error: OutlineError) -> OutlineErrorRow:
    return OutlineErrorRow(
        seq=error.seq, at=utc_text(error.at), kind=error.kind, turn=error.turn, text=error.text
    )


def _execution_row(execution: OutlineExecution) -> OutlineExecutionRow:
    return OutlineExecutionRow(
        epoch=execution.epoch,
        worker=execution.worker,
        first_seq=execution.first_seq,
        last_seq=execution.last_seq,
        start=utc_text(execution.start),
        end=utc_text(execution.end),
        outcome=execution.outcome,
    )


def _gap_row(gap: Gap, workers: Mapping[int, str], reader: StateReader) -> GapRow:
    return GapRow(
        reason=gap.reason,
        start=utc_text(gap.start),
        end=timestamp(gap.end),
        after_seq=gap.after_seq,
        before_seq=gap.before_seq,
        text=gap.text,
        code=gap.code,
        until=timestamp(gap.until),
        no_worker_until=timestamp(_no_worker_until(gap, workers, reader)),
    )


def _no_worker_until(gap: Gap, workers: Mapping[int, str], reader: StateReader) -> datetime | None:
    """When the worker that ended the gap was started, if that was after the gap began: until then the fleet was down."""
    if gap.reason not in (QUEUED, CRASH) or gap.epoch is None:
        return None
    worker = reader.find_worker(workers.get(gap.epoch, ""))
    return worker.started_at if worker is not None and worker.started_at > gap.start else None


def _child_row(child: Job) -> OutlineChildRow:
    return OutlineChildRow(
        id=child.id,
        agent=child.agent,
        status=child.status.value,
        created_at=utc_text(child.created_at),
        started_at=timestamp(child.started_at),
        finished_at=timestamp(child.finished_at),
        cost_usd=to_usd(child.cost_microusd),
    )


def _checkpoint_row(one: OutlineCheckpoint) -> OutlineCheckpointRow:
    return OutlineCheckpointRow(
        number=one.number,
        seq=one.seq,
        at=utc_text(one.at),
        trigger=one.trigger,
        turn=one.turn,
        cost_usd=to_usd(MicroUsd(one.cost_microusd)),
    )
