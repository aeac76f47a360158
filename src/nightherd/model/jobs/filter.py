"""Filters of jobs: what `jobs list QUERY` and `GET /v1/jobs?q=` mean, and whether a job fits."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from nightherd.model.filters import has_words, parse_filter
from nightherd.model.jobs.job import Job, JobFilter, JobQuery, JobStatus, TriggerType

KEYS = frozenset(
    {"agent", "status", "cost", "since", "until", "schedule", "session", "trigger", "run"}
)
NO_FILTER = JobFilter()


def parse_job_filter(text: str, now: datetime) -> JobFilter:
    """Return the filter that `text` spells, or `InvalidValueError` with the column of its first error."""
    terms = parse_filter(text, KEYS)
    costs = terms.costs()
    return JobFilter(
        agents=terms.texts("agent"),
        statuses=terms.choices("status", JobStatus),
        triggers=terms.choices("trigger", TriggerType),
        schedules=terms.texts("schedule"),
        sessions=terms.texts("session"),
        runs=terms.texts("run"),
        least_cost=None if costs.is_all else costs.least,
        most_cost=None if costs.is_all else costs.most,
        since=terms.instant("since", now, max),
        until=terms.instant("until", now, min),
        words=terms.words,
    )


def filter_of(query: JobQuery) -> JobFilter | None:
    """Return all that a query asks for as one filter; None when no job can fit."""
    filter = query.filter or NO_FILTER
    if query.agent is not None:
        if filter.agents and query.agent not in filter.agents:
            return None
        filter = replace(filter, agents=(query.agent,))
    if query.status is not None:
        if filter.statuses and query.status not in filter.statuses:
            return None
        filter = replace(filter, statuses=(query.status,))
    return filter


def fits(job: Job, filter: JobFilter) -> bool:
    """Whether a list with the filter shows the job."""
    schedules = (job.schedule, f"{job.agent}/{job.schedule}")
    return (
        (not filter.agents or job.agent in filter.agents)
        and (not filter.statuses or job.status in filter.statuses)
        and (not filter.triggers or job.trigger_type in filter.triggers)
        and (not filter.schedules or any(name in filter.schedules for name in schedules))
        and (not filter.sessions or _begins(job.session_id, filter.sessions, "sess-"))
        and (not filter.runs or _begins(job.workflow_run_id, filter.runs, "run-"))
        and (filter.least_cost is None or job.cost_microusd >= filter.least_cost)
        and (filter.most_cost is None or job.cost_microusd <= filter.most_cost)
        and (filter.since is None or job.created_at >= filter.since)
        and (filter.until is None or job.created_at < filter.until)
        and has_words(filter.words, (job.id, job.agent, job.schedule, job.summary, job.error))
    )


def _begins(id: str | None, prefixes: tuple[str, ...], word: str) -> bool:
    return id is not None and any(id.startswith(whole_prefix(one, word)) for one in prefixes)


def whole_prefix(prefix: str, word: str) -> str:
    """Return the beginning of an id, of which the word at its front may have been left out."""
    return prefix if prefix.startswith(word) else word + prefix
