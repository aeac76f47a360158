"""Filters of runs: what `runs list QUERY` and `GET /v1/runs?q=` mean, and whether a run fits."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from nightherd.model.filters import has_words, parse_filter
from nightherd.model.jobs.job import TriggerType
from nightherd.model.workflows.rows import RunFilter, RunQuery, WorkflowRun
from nightherd.model.workflows.run import RunStatus

KEYS = frozenset({"workflow", "status", "cost", "since", "until", "schedule", "trigger"})
NO_FILTER = RunFilter()


def parse_run_filter(text: str, now: datetime) -> RunFilter:
    """Return the filter that `text` spells, or `InvalidValueError` with the column of its first error."""
    terms = parse_filter(text, KEYS)
    costs = terms.costs()
    return RunFilter(
        workflows=terms.texts("workflow"),
        statuses=terms.choices("status", RunStatus),
        triggers=terms.choices("trigger", TriggerType),
        schedules=terms.texts("schedule"),
        least_cost=None if costs.is_all else costs.least,
        most_cost=None if costs.is_all else costs.most,
        since=terms.instant("since", now, max),
        until=terms.instant("until", now, min),
        words=terms.words,
    )


def run_filter_of(query: RunQuery) -> RunFilter | None:
    """Return all that a query asks for as one filter; None when no run can fit."""
    filter = query.filter or NO_FILTER
    if query.workflow is not None:
        if filter.workflows and query.workflow not in filter.workflows:
            return None
        filter = replace(filter, workflows=(query.workflow,))
    if query.status is not None:
        if filter.statuses and query.status not in filter.statuses:
            return None
        filter = replace(filter, statuses=(query.status,))
    return filter


def run_fits(run: WorkflowRun, filter: RunFilter) -> bool:
    """Whether a list with the filter shows the run."""
    schedules = (run.schedule, f"{run.workflow_name}/{run.schedule}")
    texts = (run.id, run.workflow_name, run.schedule, run.current_phase, run.error)
    return (
        (not filter.workflows or run.workflow_name in filter.workflows)
        and (not filter.statuses or run.status in filter.statuses)
        and (not filter.triggers or run.trigger_type in filter.triggers)
        and (not filter.schedules or any(name in filter.schedules for name in schedules))
        and (filter.least_cost is None or run.cost_microusd >= filter.least_cost)
        and (filter.most_cost is None or run.cost_microusd <= filter.most_cost)
        and (filter.since is None or run.started_at >= filter.since)
        and (filter.until is None or run.started_at < filter.until)
        and has_words(filter.words, texts)
    )
