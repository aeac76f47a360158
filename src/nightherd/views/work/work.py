"""Issues that were taken, and how their sources do, as every surface shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from nightherd.errors import AmbiguousIdError, NotFoundError
from nightherd.model.text import ShowTime, quote, time_text
from nightherd.model.work.issue import IssueLock
from nightherd.model.work.item import WorkId, WorkItem, WorkStatus, short_id, work_id
from nightherd.model.work.source import SourceState, SourceStatus, WorkSource
from nightherd.views.jobs.jobs import timestamp

if TYPE_CHECKING:
    from nightherd.model.agents.agent import Agent
    from nightherd.ports import StateReader

MOST = 1_000
"""Issues among which one is looked for that is named by a part of its id."""


class WorkItemRow(TypedDict):
    """An issue that was taken."""

    id: str
    source: str
    issue: int
    title: str
    status: str
    outcome: str | None
    agent: str
    schedule: str
    job_id: str | None
    attempts: int
    reserved_at: str
    changed_at: str
    not_before: str | None
    due_at: str | None
    tries: int
    last_error: str | None
    comment_id: str | None


class WorkSourceRow(TypedDict):
    """How a source does."""

    source: str
    status: str
    since: str
    blocked_until: str | None
    error: str | None
    failures: int
    open_issues: int | None


class WorkLockRow(TypedDict):
    """A lock that says which fleet has an issue."""

    issue: str
    source: str
    number: int
    fleet: str
    since: str
    lock: str
    is_own: bool


def work_lock_row(source: str, lock: IssueLock, item: WorkItem | None) -> WorkLockRow:
    """Return a lock as plain data; `item` is this fleet's issue where the lock is its own."""
    return {
        "issue": short_id(work_id(source, lock.number)),
        "source": source,
        "number": lock.number,
        "fleet": lock.fleet,
        "since": lock.since,
        "lock": lock.lock,
        "is_own": item is not None,
    }


class UnlockedRow(WorkLockRow):
    """A lock that was removed."""

    is_ready: bool


def unlocked_row(source: str, lock: IssueLock, *, is_ready: bool) -> UnlockedRow:
    """Return a lock that was removed as plain data."""
    return {**work_lock_row(source, lock, None), "is_ready": is_ready}


def work_item_row(item: WorkItem) -> WorkItemRow:
    """Return an issue as plain data."""
    return {
        "id": item.id,
        "source": item.source,
        "issue": item.issue,
        "title": item.title,
        "status": item.status.value,
        "outcome": None if item.outcome is None else item.outcome.value,
        "agent": item.agent,
        "schedule": item.schedule,
        "job_id": item.job_id,
        "attempts": item.attempts,
        "reserved_at": timestamp(item.reserved_at),
        "changed_at": timestamp(item.changed_at),
        "not_before": timestamp(item.not_before),
        "due_at": timestamp(item.due_at),
        "tries": item.tries,
        "last_error": item.last_error,
        "comment_id": item.comment_id,
    }


def work_source_row(state: SourceState) -> WorkSourceRow:
    """Return how a source does as plain data."""
    return {
        "source": state.id,
        "status": state.status.value,
        "since": timestamp(state.checked_at),
        "blocked_until": timestamp(state.blocked_until),
        "error": state.error,
        "failures": state.failures,
        "open_issues": state.open_issues,
    }


def sources_of(agents: Iterable[Agent]) -> dict[str, WorkSource]:
    """Return the sources that the agents' schedules take issues from, by their ids."""
    schedules = (one for agent in agents for one in agent.schedules.values())
    return {one.work.id: one.work for one in schedules if one.work is not None}


def every_source(agents: Iterable[Agent]) -> tuple[WorkSource, ...]:
    """Return what the agents' schedules say about sources: the same repository may be said with several labels."""
    schedules = (one for agent in agents for one in agent.schedules.values())
    return tuple(dict.fromkeys(one.work for one in schedules if one.work is not None))


def failing_sources(reader: StateReader, wanted: Iterable[str] | None = None) -> list[SourceState]:
    """Return the sources that cannot be asked; of `wanted` alone, where it is given."""
    names = None if wanted is None else set(wanted)
    return [
        state
        for state in reader.list_work_sources()
        if state.status is not SourceStatus.OK and (names is None or state.id in names)
    ]


def failing_source_text(state: SourceState, now: datetime, show_time: ShowTime = time_text) -> str:
    """Say why no issue of a source is taken, and until when it is left alone."""
    until = state.blocked_until
    again = f"; not asked before {show_time(until)}" if until is not None and until > now else ""
    return f"no issue of {state.id} is taken: {state.error or state.status.value}{again}"


def unsettled_items(reader: StateReader) -> list[WorkItem]:
    """Return the issues whose jobs have ended, and whose trackers do not know it yet."""
    return [item for item in reader.open_work_items() if _is_unsettled(item, reader)]


def _is_unsettled(item: WorkItem, reader: StateReader) -> bool:
    if item.status is not WorkStatus.WORKING or item.job_id is None:
        return item.status is WorkStatus.SETTLING
    job = reader.find_job(item.job_id)
    return job is not None and job.is_terminal


def unsettled_text(item: WorkItem, *, is_anybody_there: bool) -> str | None:
    """Say what an issue waits for; None while it is a matter of seconds."""
    if item.last_error is not None:
        return f"issue {short_id(item.id)} is not settled: {item.last_error}"
    if is_anybody_there:
        return None
    return f"issue {short_id(item.id)} waits for a daemon or worker to settle it; none is running"


def list_items(reader: StateReader, limit: int, *, is_open: bool = False) -> Sequence[WorkItem]:
    """Return the issues that changed last, the latest first; with `is_open` only those that are taken."""
    if not is_open:
        return reader.list_work_items(limit)
    return sorted(reader.open_work_items(), key=lambda item: item.changed_at, reverse=True)[:limit]


def find_item(reader: StateReader, reference: str) -> WorkItem:
    """Return the issue that `github:OWNER/NAME#7`, `OWNER/NAME#7`, `#7` or `7` means."""
    exact = reader.find_work_item(WorkId(reference))
    if exact is not None:
        return exact
    number = reference.removeprefix("#")
    found = [
        item
        for item in reader.list_work_items(MOST)
        if item.id.casefold().endswith((f":{reference}".casefold(), f"/{reference}".casefold()))
        or number == str(item.issue)
    ]
    if not found:
        raise NotFoundError(f"no schedule has taken an issue {quote(reference)}")
    if len(found) > 1:
        names = ", ".join(item.id for item in found[:3])
        raise AmbiguousIdError(f"{quote(reference)} may be {names}")
    return found[0]
