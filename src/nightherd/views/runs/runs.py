"""Workflow runs as lists show them: found by reference, listed in pages, described as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import msgspec
from msgspec.structs import replace

from nightherd.errors import AmbiguousIdError, NotFoundError
from nightherd.model.jobs.job import TriggerType
from nightherd.model.units import to_usd
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.model.workflows.run import RUN_ID, RUN_PREFIX, RunId, RunStatus
from nightherd.next_step import Action, NextStep
from nightherd.views.jobs.jobs import ENDING, LAST, LAST_FAILED, NEWEST, seconds_of, timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from nightherd.ports import RunReader

SHOWN_CANDIDATES = 5


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some runs, newest first, and the cursor of the next page if there is one."""

    runs: Sequence[WorkflowRun]
    next_before: int | None = None


def list_run_page(reader: RunReader, query: RunQuery) -> RunPage:
    """Return a page of runs. Reads rows only, no long texts."""
    found = reader.list_runs(replace(query, limit=query.limit + 1))
    page = found[: query.limit]
    more = page[-1].number if len(found) > query.limit else None
    return RunPage(runs=page, next_before=more)


def find_run(reader: RunReader, run_id: RunId) -> WorkflowRun:
    """Return the run's row as it is now; `NotFoundError` when there is none."""
    run = reader.find_run(run_id)
    if run is None:
        raise _not_found(f"there is no run {run_id}")
    return run


def find_run_id(reader: RunReader, reference: str) -> RunId:
    """Return the one run that `reference` means: an id, a unique prefix of one, `@last` or `@last-failed`.

    A prefix may leave out `run-`. The last characters do as well, of one of the newest.
    """
    if reference in (LAST, LAST_FAILED):
        status = RunStatus.FAILED if reference == LAST_FAILED else None
        newest = reader.list_runs(RunQuery(status=status, limit=1))
        if not newest:
            what = "failed runs" if status else "runs"
            raise NotFoundError(
                f"there are no {what} yet", next_step=NextStep(Action.LIST_WORKFLOWS)
            )
        return _started(reader, newest[0], status)
    if RUN_ID.fullmatch(reference):
        return find_run(reader, RunId(reference)).id
    found = _candidates(reader, reference) if reference else ()
    if not found and ENDING.fullmatch(reference):
        newest = reader.list_runs(RunQuery(limit=NEWEST))
        found = [run.id for run in newest if run.id.endswith(reference)]
    if len(found) == 1:
        return found[0]
    if reference.startswith("@"):
        raise _not_found(f"{reference!r} is neither {LAST} nor {LAST_FAILED}")
    if not found:
        raise _not_found(
            f"no run begins with {reference!r}" if reference else "the run id is empty"
        )
    shown = ", ".join(found[:SHOWN_CANDIDATES]) + (", ..." if len(found) > SHOWN_CANDIDATES else "")
    raise AmbiguousIdError(f"{reference!r} could be {shown}", hint="give more characters of the id")


def _started(reader: RunReader, newest: WorkflowRun, status: RunStatus | None) -> RunId:
    """The run at the top of its tree, if that has the status too: the one that somebody started."""
    root = reader.find_run(newest.root) or newest
    return root.id if status in (None, root.status) else newest.id


def _candidates(reader: RunReader, reference: str) -> Sequence[RunId]:
    is_whole = reference.startswith(RUN_PREFIX) or RUN_PREFIX.startswith(reference)
    return reader.run_ids(reference if is_whole else RUN_PREFIX + reference, SHOWN_CANDIDATES + 1)


def _not_found(message: str) -> NotFoundError:
    return NotFoundError(message, next_step=NextStep(Action.LIST_RUNS))


def took(run: WorkflowRun, now: datetime) -> timedelta:
    """Return the time from the start of the run to its end, or to `now`; pauses count."""
    return max((run.finished_at or now) - run.started_at, run.started_at - run.started_at)


class RunRow(TypedDict):
    """A run of a workflow as lists have it."""

    id: str
    workflow: str
    status: RunStatus
    current_phase: str | None
    trigger_type: TriggerType
    trigger_id: str
    schedule: str | None
    repo: str | None
    issue_number: int | None
    started_by: str | None
    started_at: str
    updated_at: str
    finished_at: str | None
    duration_seconds: float
    worked_seconds: float
    cost_usd: float
    error: str | None
    stopping: str | None
    attempt: int
    retried_from: str | None
    forked_from: str | None
    parent_run_id: str | None
    root_run_id: str | None
    restart_count: int
    definition_hash: str | None


class StartedRunRow(RunRow):
    """A run that was started; `is_new` is false when the same request started it before."""

    is_new: bool


class ResumedRunRow(RunRow):
    """A run whose suspended jobs were resumed, and why others were not."""

    resumed_jobs: list[str]
    refused: list[str]


class OpenRunsRow(TypedDict):
    """How many runs have not ended: by status, and by workflow and status."""

    queued: int
    running: int
    paused: int
    workflows: dict[str, dict[str, int]]


def run_row(run: WorkflowRun, now: datetime) -> RunRow:
    """Return a run as lists have it. Its cost is that of its jobs and sub-workflows that have ended."""
    return {
        "id": run.id,
        "workflow": run.workflow_name,
        "status": run.status,
        "current_phase": run.current_phase or None,
        "trigger_type": run.trigger_type,
        "trigger_id": run.trigger_id,
        "schedule": run.schedule,
        "repo": run.repo,
        "issue_number": run.issue_number,
        "started_by": run.started_by,
        "started_at": timestamp(run.started_at),
        "updated_at": timestamp(run.updated_at),
        "finished_at": timestamp(run.finished_at),
        "duration_seconds": seconds_of(took(run, now)),
        "worked_seconds": round(run.worked_ms / 1000, 3),
        "cost_usd": to_usd(run.cost_microusd),
        "error": run.error,
        "stopping": run.stopping,
        "attempt": run.attempt,
        "retried_from": run.retried_from,
        "forked_from": run.forked_from,
        "parent_run_id": run.parent_run_id,
        "root_run_id": run.root_run_id,
        "restart_count": run.restart_count,
        "definition_hash": run.definition_hash or None,
    }


def open_runs_row(counts: Mapping[tuple[str, RunStatus], int]) -> OpenRunsRow:
    """Return how many runs have not ended: by status, and by workflow and status."""
    workflows: dict[str, dict[str, int]] = {}
    totals = {status.value: 0 for status in (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.PAUSED)}
    for (name, status), count in counts.items():
        workflows.setdefault(name, {})[status.value] = count
        totals[status.value] = totals.get(status.value, 0) + count
    return {
        "queued": totals[RunStatus.QUEUED],
        "running": totals[RunStatus.RUNNING],
        "paused": totals[RunStatus.PAUSED],
        "workflows": workflows,
    }
