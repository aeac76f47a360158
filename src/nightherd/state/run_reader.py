"""Reading workflow runs: their rows, nodes, texts, events and switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem
from nightherd.model.jobs.job import Job
from nightherd.model.limits.limits import Used
from nightherd.model.text import utc_text
from nightherd.model.workflows.filter import run_filter_of
from nightherd.model.workflows.rows import (
    PinnedWorkflow,
    RunQuery,
    WorkflowContext,
    WorkflowEvent,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowOverride,
    WorkflowRun,
    WorkflowScratch,
)
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.state.filtered_runs import run_statements
from nightherd.state.job_reader import NEWEST, SqliteJobReader
from nightherd.state.rows import SqliteRows


class SqliteRunReader(SqliteJobReader):
    """Questions about workflow runs."""

    def find_run(self, run_id: RunId) -> WorkflowRun | None:
        rows = self._rows()
        return rows.get(WorkflowRun, run_id) if rows else None

    def list_runs(self, query: RunQuery) -> Sequence[WorkflowRun]:
        rows = self._rows()
        if rows is None:
            return ()
        page = (query.before if query.before is not None else NEWEST, query.limit)
        if query.filter is not None:
            filter = run_filter_of(query)
            if filter is None:
                return ()
            columns = rows.table(WorkflowRun).columns
            runs = rows.select(WorkflowRun, run_statements(filter, columns, *page))
            newest = sorted(runs, key=lambda run: (run.started_at, run.number), reverse=True)
            return newest[: query.limit]
        status = None if query.status is None else query.status.value
        if query.workflow is not None and status is not None:
            values = (*page, query.workflow, status)
            return rows.list(WorkflowRun, "list_runs_by_workflow_and_status", values)
        if query.workflow is not None:
            return rows.list(WorkflowRun, "list_runs_by_workflow", (*page, query.workflow))
        if status is not None:
            return rows.list(WorkflowRun, "list_runs_by_status", (*page, status))
        return rows.list(WorkflowRun, "list_runs", page)

    def run_ids(self, prefix: str, limit: int) -> Sequence[RunId]:
        rows = self._rows()
        values = (prefix, prefix + "\x7f", limit)
        found = rows.values("run_ids_of_prefix", *values) if rows else ()
        return [RunId(str(id)) for (id,) in found]

    def runs_of_parent(self, run_id: RunId) -> Sequence[WorkflowRun]:
        rows = self._rows()
        return rows.list(WorkflowRun, "runs_of_parent", (run_id,)) if rows else ()

    def find_pinned(self, hash: str) -> PinnedWorkflow | None:
        rows = self._rows()
        return rows.get(PinnedWorkflow, hash) if rows else None

    def find_run_context(self, run_id: RunId) -> WorkflowContext | None:
        rows = self._rows()
        return rows.get(WorkflowContext, run_id) if rows else None

    def find_run_scratch(self, run_id: RunId) -> WorkflowScratch | None:
        rows = self._rows()
        return rows.get(WorkflowScratch, run_id) if rows else None

    def find_node(self, node_id: str) -> WorkflowNode | None:
        rows = self._rows()
        return rows.get(WorkflowNode, node_id) if rows else None

    def find_node_texts(self, node_id: str) -> WorkflowNodeTexts | None:
        rows = self._rows()
        return rows.get(WorkflowNodeTexts, node_id) if rows else None

    def nodes_of_run(self, run_id: RunId) -> Sequence[WorkflowNode]:
        rows = self._rows()
        return rows.list(WorkflowNode, "nodes_of_run", (run_id,)) if rows else ()

    def jobs_of_run(self, run_id: RunId) -> Sequence[Job]:
        rows = self._rows()
        return rows.list(Job, "jobs_of_run", (run_id,)) if rows else ()

    def items_of_run(self, run_id: RunId) -> Sequence[InboxItem]:
        rows = self._rows()
        return rows.list(InboxItem, "items_of_run", (run_id,)) if rows else ()

    def events_of_run(self, run_id: RunId) -> Sequence[WorkflowEvent]:
        rows = self._rows()
        return rows.list(WorkflowEvent, "events_of_run", (run_id,)) if rows else ()

    def runs_to_advance(self, at: datetime, limit: int) -> Sequence[RunId]:
        rows = self._rows()
        found = rows.values("due_runs", utc_text(at), limit) if rows else ()
        return [RunId(str(id)) for (id,) in found]

    def list_workflow_overrides(self) -> Sequence[WorkflowOverride]:
        rows = self._rows()
        return rows.list(WorkflowOverride, "list_workflow_overrides", ()) if rows else ()

    def count_open_runs(self) -> Mapping[tuple[str, RunStatus], int]:
        rows = self._rows()
        found = rows.values("count_open_runs") if rows else ()
        return {
            (str(name), RunStatus(str(status))): int(str(count)) for name, status, count in found
        }

    def used_in_run(self, run_id: RunId) -> Used:
        rows = self._rows()
        return used_in_run(rows, run_id, JobId("")) if rows else Used()


def used_in_run(rows: SqliteRows, run_id: RunId, besides: JobId) -> Used:
    """What all jobs of a run and below it have used and set aside, one of them left out; `spawns` counts those that are no phases."""
    ((cost, turns, tokens, count),) = rows.values("used_in_run", run_id, besides)
    return Used(
        spend=int(str(cost)), turns=int(str(turns)), tokens=int(str(tokens)), spawns=int(str(count))
    )
