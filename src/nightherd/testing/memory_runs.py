"""Workflow runs in memory: what decisions and readers ask about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem
from nightherd.model.jobs.job import Execution, Job, JobStatus
from nightherd.model.limits.limits import Used
from nightherd.model.limits.spending import Reservation, used_of
from nightherd.model.workflows.filter import run_filter_of, run_fits
from nightherd.model.workflows.rows import (
    PinnedWorkflow,
    RunNodes,
    RunQuery,
    WorkflowContext,
    WorkflowEvent,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowOverride,
    WorkflowRun,
    WorkflowScratch,
    items_in,
)
from nightherd.model.workflows.run import RunId, RunStatus

if TYPE_CHECKING:
    from nightherd.testing.memory_state import MemoryRows

RowT = TypeVar("RowT", bound=msgspec.Struct)


class MemoryRunRows:
    """The part of the rows in memory that is about runs."""

    if TYPE_CHECKING:

        def all(self, row_type: type[RowT]) -> Sequence[RowT]: ...
        def get(self, kind: type[RowT], key: str) -> RowT | None: ...

    def nodes_of_run(self, run_id: RunId) -> Sequence[WorkflowNode]:
        mine = [node for node in self.all(WorkflowNode) if node.run_id == run_id]
        return sorted(mine, key=lambda node: node.number)

    def run_nodes(self, run_id: RunId) -> RunNodes:
        known = RunNodes()
        for node in self.nodes_of_run(run_id):
            known.put(node, items_in(self.get(WorkflowNodeTexts, node.id)))
        return known

    def run_with_dedupe_key(self, key: str) -> WorkflowRun | None:
        return next((run for run in self.all(WorkflowRun) if run.dedupe_key == key), None)

    def open_runs_of_key(self, key: str, limit: int) -> Sequence[WorkflowRun]:
        return self._runs_of_key(key, RunStatus.RUNNING, RunStatus.PAUSED)[:limit]

    def queued_runs_of_key(self, key: str, limit: int) -> Sequence[WorkflowRun]:
        return self._runs_of_key(key, RunStatus.QUEUED)[:limit]

    def open_runs_of_schedule(
        self, workflow: str, schedule: str, limit: int
    ) -> Sequence[WorkflowRun]:
        mine = [
            run
            for run in self.all(WorkflowRun)
            if (run.workflow_name, run.schedule) == (workflow, schedule) and not run.is_terminal
        ]
        return sorted(mine, key=lambda run: run.number)[:limit]

    def _runs_of_key(self, key: str, *statuses: RunStatus) -> list[WorkflowRun]:
        mine = [run for run in self.all(WorkflowRun) if run.concurrency_key == key]
        return sorted((run for run in mine if run.status in statuses), key=lambda run: run.number)

    def waiting_jobs_in_run(self, run_id: RunId, at: datetime, limit: int) -> Sequence[Job]:
        runs = self._runs_below(run_id)
        waiting = [
            job
            for job in self.all(Job)
            if job.workflow_run_id in runs
            and job.status is JobStatus.PENDING
            and (job.not_before is None or job.not_before <= at)
        ]
        return sorted(waiting, key=lambda job: job.number)[:limit]

    def _runs_below(self, run_id: RunId) -> set[str]:
        """The run and every run below it."""
        runs = {str(run_id)}
        while more := {
            run.id
            for run in self.all(WorkflowRun)
            if run.parent_run_id in runs and run.id not in runs
        }:
            runs |= more
        return runs

    def events_of_run(self, run_id: RunId) -> Sequence[WorkflowEvent]:
        mine = [event for event in self.all(WorkflowEvent) if event.run_id == run_id]
        return sorted(mine, key=lambda event: event.number)

    def executions_of(self, job_id: JobId) -> Sequence[Execution]:
        mine = [one for one in self.all(Execution) if one.job_id == job_id]
        return sorted(mine, key=lambda one: one.epoch)

    def used_in_run(self, run_id: RunId, *, besides: JobId) -> Used:
        runs, jobs = self._runs_below(run_id), set[str]()
        while found := {
            job.id
            for job in self.all(Job)
            if (job.workflow_run_id in runs or job.parent_job_id in jobs) and job.id not in jobs
        }:
            jobs |= found
        used = Used()
        for job in self.all(Job):
            if job.id in jobs and job.id != besides:
                held = self.get(Reservation, job.id)
                used = used + used_of(job) + Used(spawns=int(job.workflow_run_id is None))
                if held is not None:
                    used = used + Used(spend=held.cost_microusd, tokens=held.tokens)
        return used

    def next_run_number(self) -> int:
        return max((run.number for run in self.all(WorkflowRun)), default=0) + 1


class MemoryRunReader:
    """The part of a `StateReader` that is about workflow runs."""

    _rows: MemoryRows

    def find_run(self, run_id: RunId) -> WorkflowRun | None:
        return self._rows.get(WorkflowRun, run_id)

    def list_runs(self, query: RunQuery) -> Sequence[WorkflowRun]:
        runs = sorted(
            self._rows.all(WorkflowRun), key=lambda run: (run.started_at, run.number), reverse=True
        )
        cursor = next((run for run in runs if run.number == query.before), None)
        if query.before is not None and cursor is not None:
            place = (cursor.started_at, cursor.number)
            runs = [run for run in runs if (run.started_at, run.number) < place]
        filter = run_filter_of(query)
        matching = [run for run in runs if filter is not None and run_fits(run, filter)]
        return matching[: query.limit]

    def run_ids(self, prefix: str, limit: int) -> Sequence[RunId]:
        found = sorted(run.id for run in self._rows.all(WorkflowRun) if run.id.startswith(prefix))
        return found[:limit]

    def runs_of_parent(self, run_id: RunId) -> Sequence[WorkflowRun]:
        mine = [run for run in self._rows.all(WorkflowRun) if run.parent_run_id == run_id]
        return sorted(mine, key=lambda run: run.number)

    def find_pinned(self, hash: str) -> PinnedWorkflow | None:
        return self._rows.get(PinnedWorkflow, hash)

    def find_run_context(self, run_id: RunId) -> WorkflowContext | None:
        return self._rows.get(WorkflowContext, run_id)

    def find_run_scratch(self, run_id: RunId) -> WorkflowScratch | None:
        return self._rows.get(WorkflowScratch, run_id)

    def find_node(self, node_id: str) -> WorkflowNode | None:
        return self._rows.get(WorkflowNode, node_id)

    def find_node_texts(self, node_id: str) -> WorkflowNodeTexts | None:
        return self._rows.get(WorkflowNodeTexts, node_id)

    def nodes_of_run(self, run_id: RunId) -> Sequence[WorkflowNode]:
        return self._rows.nodes_of_run(run_id)

    def jobs_of_run(self, run_id: RunId) -> Sequence[Job]:
        mine = [job for job in self._rows.all(Job) if job.workflow_run_id == run_id]
        return sorted(mine, key=lambda job: job.number)

    def items_of_run(self, run_id: RunId) -> Sequence[InboxItem]:
        return [item for item in self._rows.items() if item.workflow_run_id == run_id]

    def events_of_run(self, run_id: RunId) -> Sequence[WorkflowEvent]:
        return self._rows.events_of_run(run_id)

    def runs_to_advance(self, at: datetime, limit: int) -> Sequence[RunId]:
        due = [
            node.run_id
            for node in self._rows.all(WorkflowNode)
            if not node.has_ended and node.due_at is not None and node.due_at <= at
        ]
        return list(dict.fromkeys(due))[:limit]

    def list_workflow_overrides(self) -> Sequence[WorkflowOverride]:
        return sorted(self._rows.all(WorkflowOverride), key=lambda one: one.name)

    def count_open_runs(self) -> Mapping[tuple[str, RunStatus], int]:
        open_runs = [run for run in self._rows.all(WorkflowRun) if not run.is_terminal]
        return Counter((run.workflow_name, run.status) for run in open_runs)

    def used_in_run(self, run_id: RunId) -> Used:
        return self._rows.used_in_run(run_id, besides=JobId(""))
