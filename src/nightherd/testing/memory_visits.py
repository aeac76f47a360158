"""State in memory: questions about visits, and about what ended since a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from nightherd.model.access.visit import Visit
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunStatus

if TYPE_CHECKING:
    from nightherd.testing.memory_state import MemoryRows


class MemoryVisitReader:
    """The part of `MemoryReader` that is about visits and about what has ended."""

    if TYPE_CHECKING:
        _rows: MemoryRows

    def find_visit(self, person: str) -> Visit | None:
        return self._rows.get(Visit, person)

    def count_ended_jobs(self, since: datetime) -> Mapping[JobStatus, int]:
        return Counter(job.status for _, _, job in self._ended_jobs(since))

    def ended_jobs(self, status: JobStatus, since: datetime, limit: int) -> Sequence[Job]:
        found = [row for row in self._ended_jobs(since) if row[2].status is status]
        newest = sorted(found, key=lambda row: row[:2], reverse=True)
        return [job for _, _, job in newest[:limit]]

    def count_ended_runs(self, since: datetime) -> Mapping[RunStatus, int]:
        return Counter(run.status for _, _, run in self._ended_runs(since))

    def ended_runs(self, status: RunStatus, since: datetime, limit: int) -> Sequence[WorkflowRun]:
        found = [row for row in self._ended_runs(since) if row[2].status is status]
        newest = sorted(found, key=lambda row: row[:2], reverse=True)
        return [run for _, _, run in newest[:limit]]

    def _ended_jobs(self, since: datetime) -> list[tuple[datetime, int, Job]]:
        """The jobs that are no part of something else and ended since then, each after when it did."""
        return [
            (job.finished_at, job.number, job)
            for job in self._rows.all(Job)
            if job.is_terminal
            and job.parent_job_id is None
            and job.workflow_run_id is None
            and job.finished_at is not None
            and job.finished_at >= since
        ]

    def _ended_runs(self, since: datetime) -> list[tuple[datetime, int, WorkflowRun]]:
        return [
            (run.finished_at, run.number, run)
            for run in self._rows.all(WorkflowRun)
            if run.is_terminal
            and run.parent_run_id is None
            and run.finished_at is not None
            and run.finished_at >= since
        ]
