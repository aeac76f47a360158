"""Home: what happened since a person last looked, what needs a person, what runs, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, TypedDict

import msgspec

from nightherd.model.access.visit import Visit, visit_at
from nightherd.model.costs.breakdown import CostQuery, break_down
from nightherd.model.costs.cell import Amounts, quarter_of
from nightherd.model.costs.period import Period, read_time
from nightherd.model.inbox.item import InboxItem, InboxQuery
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.model.workflows.run import RunStatus
from nightherd.views.costs.costs import CostTotalRow, total_row
from nightherd.views.costs.limits import current_limits, limits_of_agents
from nightherd.views.health.health import Health, HealthRow, health_row
from nightherd.views.jobs.jobs import IsAtWork, every_job, job_row, observe_jobs, timestamp
from nightherd.views.jobs.liveness import LiveJob, LiveJobRow, live_job_rows, look_at
from nightherd.views.jobs.rows import JobRow
from nightherd.views.people.inbox import InboxCounts, count_inbox, inbox_counts_row, item_row
from nightherd.views.people.inbox_rows import InboxCountsRow, ItemRow
from nightherd.views.people.notifications import failing_targets
from nightherd.views.runs.runs import RunRow, run_row
from nightherd.views.schedules.rows import ScheduleRow
from nightherd.views.schedules.schedules import ScheduleView, list_views, schedule_row

if TYPE_CHECKING:
    from nightherd.model.agents.agent import Fleet
    from nightherd.model.disk_space import DiskSpace
    from nightherd.model.jobs.lost import ObservedJob
    from nightherd.model.workflows.rows import WorkflowRun
    from nightherd.ports import Costs, Journals, StateReader
    from nightherd.views.fleet.status import DaemonRow

FIRST_VISIT = timedelta(days=1)
"""How far back a person sees who was never here before."""
ENDED = 5
"""Jobs and runs that are named of each way to end."""
ASKED, SUSPENDED, RUNNING, NEXT = 5, 10, 20, 5
PAGE = 1_000
"""Running jobs that are read at once."""
JOB_ENDS = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)
RUN_ENDS = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the state: the process that answers, and the disk."""

    daemon: DaemonRow | None = None
    disk: DiskSpace | None = None


class HomeView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that Home shows."""

    visit: Visit
    since: datetime
    ended_jobs: Mapping[JobStatus, Sequence[ObservedJob]]
    job_counts: Mapping[JobStatus, int]
    ended_runs: Mapping[RunStatus, Sequence[WorkflowRun]]
    run_counts: Mapping[RunStatus, int]
    spent: Amounts
    pending_jobs: int | None
    inbox: InboxCounts
    asked: Sequence[InboxItem]
    open_counts: Mapping[JobStatus, int]
    suspended: Sequence[ObservedJob]
    running: Sequence[LiveJob]
    running_count: int
    lost: Sequence[ObservedJob]
    schedules: Sequence[ScheduleView]
    health: Health
    at: datetime


class HomeSources(msgspec.Struct, frozen=True, kw_only=True):
    """Where Home is read from."""

    reader: StateReader
    journals: Journals
    costs: Costs
    fleet: Fleet
    is_at_work: IsAtWork


def show_home(
    sources: HomeSources,
    person: str,
    since: str | None,
    zone: tzinfo,
    around: Surroundings,
    now: datetime,
) -> HomeView:
    """Return what the person sees. Reads rows, sums, and the last lines of the journals of running jobs."""
    reader, fleet, is_at_work = sources.reader, sources.fleet, sources.is_at_work
    visit = visit_at(reader.find_visit(person), person, now)
    start = visit.visited_at or now - FIRST_VISIT
    if since is not None:
        start = read_time(since, now, zone, word="since")
    running = list(every_job(reader, JobQuery(status=JobStatus.RUNNING, limit=PAGE)))
    observed = observe_jobs(reader, running[::-1], is_at_work, now)
    live = [job for job in observed if job.status is JobStatus.RUNNING and job.lost is None]
    lost = [job for job in observed if job.lost is not None]
    suspended = reader.list_jobs(JobQuery(status=JobStatus.SUSPENDED, limit=SUSPENDED))
    counts = _by_status(reader)
    spent, pending_jobs = _spent(sources.costs, start, now)
    return HomeView(
        visit=visit,
        since=start,
        ended_jobs={
            status: observe_jobs(reader, reader.ended_jobs(status, start, ENDED), is_at_work, now)
            for status in JOB_ENDS
        },
        job_counts=reader.count_ended_jobs(start),
        ended_runs={status: reader.ended_runs(status, start, ENDED) for status in RUN_ENDS},
        run_counts=reader.count_ended_runs(start),
        spent=spent,
        pending_jobs=pending_jobs,
        inbox=count_inbox(reader),
        asked=reader.list_items(InboxQuery(limit=ASKED)),
        open_counts=counts,
        suspended=observe_jobs(reader, suspended, is_at_work, now),
        running=[look_at(reader, sources.journals, job) for job in live[:RUNNING]],
        running_count=len(live),
        lost=lost,
        schedules=_next(list_views(reader, fleet, is_at_work, now)),
        health=Health(
            daemon=around.daemon,
            disk=around.disk,
            failing=failing_targets(reader),
            rate_limits=current_limits(reader, now),
            stopped=limits_of_agents(reader, fleet.agents.values(), now),
            waiting=counts.get(JobStatus.PENDING, 0),
            workers=sum(map(is_at_work, reader.live_workers())),
            lost=len(lost),
        ),
        at=now,
    )


def _by_status(reader: StateReader) -> Mapping[JobStatus, int]:
    counts: dict[JobStatus, int] = {}
    for (_, status), count in reader.count_open_jobs().items():
        counts[status] = counts.get(status, 0) + count
    return counts


def _spent(costs: Costs, since: datetime, now: datetime) -> tuple[Amounts, int | None]:
    """What all jobs used since then, and how many jobs are not counted to their end yet."""
    period = Period(first=quarter_of(since), until=max(quarter_of(now), quarter_of(since)) + 1)
    table = costs.costs(CostQuery(period=period))
    return break_down(table, (), lambda agent: None, 1).total, table.pending_jobs


def _next(views: Sequence[ScheduleView]) -> list[ScheduleView]:
    """The schedules that are due first."""
    due = [
        (view.next_run_at, view.id, view)
        for view in views
        if view.is_enabled and view.next_run_at is not None
    ]
    return [view for _, _, view in sorted(due, key=lambda one: one[:2])[:NEXT]]


class JobGroup(TypedDict):
    """How many jobs, and some of them."""

    count: int
    rows: list[JobRow]


class RunGroup(TypedDict):
    """How many runs, and some of them."""

    count: int
    rows: list[RunRow]


class EndedJobs(TypedDict):
    """The jobs that ended, by how."""

    completed: JobGroup
    failed: JobGroup
    cancelled: JobGroup


class EndedRuns(TypedDict):
    """The runs that ended, by how."""

    succeeded: RunGroup
    failed: RunGroup
    cancelled: RunGroup


class LiveJobs(TypedDict):
    """How many jobs run, and some of them."""

    count: int
    rows: list[LiveJobRow]


class NeedsYou(InboxCountsRow):
    """How much waits in the inbox, and the newest of it."""

    rows: list[ItemRow]


class HomeDocument(TypedDict):
    """Everything that Home shows."""

    person: str
    visited_at: str | None
    since: str
    jobs: EndedJobs
    runs: EndedRuns
    spent: CostTotalRow
    pending_jobs: int | None
    inbox: NeedsYou
    waiting: int
    suspended: JobGroup
    lost: JobGroup
    running: LiveJobs
    next_schedules: list[ScheduleRow]
    health: HealthRow


class VisitDocument(TypedDict):
    """The visit of a person that lasts, and when the one before ended."""

    person: str
    visited_at: str | None
    began_at: str
    seen_at: str


def visit_document(visit: Visit) -> VisitDocument:
    """Return a visit as plain data."""
    return {
        "person": visit.person,
        "visited_at": timestamp(visit.visited_at),
        "began_at": timestamp(visit.began_at),
        "seen_at": timestamp(visit.seen_at),
    }


def home_document(view: HomeView) -> HomeDocument:
    """Return Home as plain data."""
    return {
        "person": view.visit.person,
        "visited_at": timestamp(view.visit.visited_at),
        "since": timestamp(view.since),
        "jobs": {
            "completed": _ended_jobs(view, JobStatus.COMPLETED),
            "failed": _ended_jobs(view, JobStatus.FAILED),
            "cancelled": _ended_jobs(view, JobStatus.CANCELLED),
        },
        "runs": {
            "succeeded": _ended_runs(view, RunStatus.SUCCEEDED),
            "failed": _ended_runs(view, RunStatus.FAILED),
            "cancelled": _ended_runs(view, RunStatus.CANCELLED),
        },
        "spent": total_row(view.spent),
        "pending_jobs": view.pending_jobs,
        "inbox": {
            **inbox_counts_row(view.inbox, view.at),
            "rows": [item_row(item) for item in view.asked],
        },
        "waiting": view.open_counts.get(JobStatus.PENDING, 0),
        "suspended": _jobs(view.suspended, view.open_counts.get(JobStatus.SUSPENDED, 0)),
        "lost": _jobs(view.lost[:SUSPENDED], len(view.lost)),
        "running": {"count": view.running_count, "rows": live_job_rows(view.running, view.at)},
        "next_schedules": [schedule_row(one) for one in view.schedules],
        "health": health_row(view.health),
    }


def _ended_jobs(view: HomeView, status: JobStatus) -> JobGroup:
    return _jobs(view.ended_jobs[status], view.job_counts.get(status, 0))


def _jobs(jobs: Sequence[ObservedJob], count: int) -> JobGroup:
    return {"count": count, "rows": [job_row(job) for job in jobs]}


def _ended_runs(view: HomeView, status: RunStatus) -> RunGroup:
    rows = [run_row(run, view.at) for run in view.ended_runs[status]]
    return {"count": view.run_counts.get(status, 0), "rows": rows}
