"""What a run has used of its limits: cost and time of its jobs that have ended, and the time it has left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nightherd.model.decisions.around import execution_of
from nightherd.model.decisions.rows import Rows
from nightherd.model.jobs.job import Job
from nightherd.model.limits.limits import LimitName, Limits, limits_document
from nightherd.model.units import MicroUsd
from nightherd.model.workflows.conductor.run_records import pinned_of
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun


def used_by(node: WorkflowNode, rows: Rows) -> tuple[MicroUsd, int] | None:
    """Return what a node that has ended cost, and how many milliseconds it was worked on; None where nothing ran."""
    job = rows.get(Job, node.job_id) if node.job_id is not None else None
    if job is not None:
        return job.cost_microusd, _worked_ms(job, rows)
    child = rows.get(WorkflowRun, node.child_run_id) if node.child_run_id is not None else None
    return None if child is None else (child.cost_microusd, child.worked_ms)


def _worked_ms(job: Job, rows: Rows) -> int:
    if job.epoch > 1:
        return sum(execution.duration_ms or 0 for execution in rows.executions_of(job.id))
    execution = execution_of(job, rows)
    return 0 if execution is None else execution.duration_ms or 0


def run_limits(run: WorkflowRun, limits: Limits) -> dict[str, int]:
    """Return what the run may use, as far as it is limited: as declared, or as a person raised it."""
    return {**limits_document(limits), **run.limits}


def upwards(run: WorkflowRun, rows: Rows) -> Iterator[tuple[WorkflowRun, Limits]]:
    """Yield the run and those above it, each with the limits that its workflow declares."""
    above: WorkflowRun | None = run
    while above is not None:
        yield above, pinned_of(above, rows).definition.limits
        above = rows.get(WorkflowRun, above.parent_run_id) if above.parent_run_id else None


def time_left_ms(above: Iterable[tuple[WorkflowRun, Limits]]) -> int | None:
    """Return how long jobs of a run may still work by its `duration` and that of runs above it; None without any."""
    left: int | None = None
    worked = 0
    for run, limits in above:
        # A run counts its sub-workflow when that has ended: until then, its time is added here.
        worked += run.worked_ms
        whole = run_limits(run, limits).get(LimitName.DURATION.value)
        if whole is not None:
            rest = max(whole - worked, 0)
            left = rest if left is None else min(left, rest)
    return left
