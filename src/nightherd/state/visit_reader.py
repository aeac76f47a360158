"""Reading visits, and what ended since a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from nightherd.model.access.visit import Visit
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.text import utc_text
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunStatus
from nightherd.state.run_reader import SqliteRunReader


class SqliteVisitReader(SqliteRunReader):
    """Questions about visits and about what has ended."""

    def find_visit(self, person: str) -> Visit | None:
        rows = self._rows()
        return rows.get(Visit, person) if rows else None

    def count_ended_jobs(self, since: datetime) -> Mapping[JobStatus, int]:
        rows = self._rows()
        found = rows.values("count_ended_jobs", utc_text(since)) if rows else ()
        return {JobStatus(str(status)): int(str(count)) for status, count in found}

    def ended_jobs(self, status: JobStatus, since: datetime, limit: int) -> Sequence[Job]:
        rows = self._rows()
        values = (status.value, utc_text(since), limit)
        return rows.list(Job, "list_ended_jobs", values) if rows else ()

    def count_ended_runs(self, since: datetime) -> Mapping[RunStatus, int]:
        rows = self._rows()
        found = rows.values("count_ended_runs", utc_text(since)) if rows else ()
        return {RunStatus(str(status)): int(str(count)) for status, count in found}

    def ended_runs(self, status: RunStatus, since: datetime, limit: int) -> Sequence[WorkflowRun]:
        rows = self._rows()
        values = (status.value, utc_text(since), limit)
        return rows.list(WorkflowRun, "list_ended_runs", values) if rows else ()
