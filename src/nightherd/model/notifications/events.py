"""What one change of the ledger means to people: at most one event for each job or inbox item that it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from nightherd.model.inbox.item import InboxItem, ItemKind
from nightherd.model.jobs.job import CHILD_WAITS, Job, JobStatus, SuspendReason
from nightherd.model.notifications.target import NotifyEvent

LOSING = "LoseExecution"
SILENT = frozenset(
    {
        "Snapshot",
        "Restored",
        "AdoptRows",
        "RefreshAdopted",
        "AdoptTurns",
        "CorrectJob",
        "AmendJob",
        "CountUsage",
        "SaveCheckpoint",
        "RemoveCheckpoints",
    }
)
"""Kinds of changes that write jobs again to which nothing new has happened."""
OF_ITEM = {
    ItemKind.APPROVAL: NotifyEvent.APPROVAL,
    ItemKind.QUESTION: NotifyEvent.QUESTION,
    ItemKind.LIMIT: NotifyEvent.LIMIT,
    ItemKind.RELOAD: NotifyEvent.APPROVAL,
}
LIMITED = frozenset({SuspendReason.LIMIT, SuspendReason.BUDGET})


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Something that people may want to be told."""

    event: NotifyEvent
    key: str
    """The same however often the same is read."""
    job: Job | None = None
    item: InboxItem | None = None

    def is_wanted(self, events: frozenset[NotifyEvent]) -> bool:
        """Whether it is one of `events`; a job that waits for a person is suspended too."""
        is_waiting = self.event in (NotifyEvent.APPROVAL, NotifyEvent.QUESTION, NotifyEvent.LIMIT)
        return self.event in events or (is_waiting and NotifyEvent.SUSPENDED in events)

    @property
    def agent(self) -> str | None:
        """Whose it is."""
        about = self.job or self.item
        return about.agent if about is not None else None

    @property
    def schedule(self) -> str | None:
        """The schedule it came from."""
        about = self.job or self.item
        return about.schedule if about is not None else None


def happenings(kind: str, jobs: Sequence[Job], items: Sequence[InboxItem]) -> Iterator[Happening]:
    """Yield what a change of that kind means, given the rows that it wrote."""
    if kind in SILENT:
        return
    waiting = [item for item in items if item.is_pending]
    for item in waiting:
        event = OF_ITEM.get(item.kind)
        if event is not None:
            yield Happening(event=event, key=f"item:{item.id}", item=item)
    for job in jobs:
        event = _event_of(kind, job)
        if event is None:
            continue
        mine = [item for item in waiting if item.job_id == job.id]
        if event is NotifyEvent.LIMIT and mine:
            continue  # its item says more
        asked = next((item for item in mine if item.kind is ItemKind.FAILURE), None)
        key = f"job:{job.id}:{event.value}"
        if not job.is_terminal:
            key = f"{key}:{job.epoch}"
        yield Happening(event=event, key=key, job=job, item=asked)


def _event_of(kind: str, job: Job) -> NotifyEvent | None:
    """What has happened to the job; jobs that other jobs made are told of by those."""
    if job.parent_job_id is not None and job.status is not JobStatus.SUSPENDED:
        return None
    match job.status:
        case JobStatus.COMPLETED:
            return NotifyEvent.COMPLETED
        case JobStatus.FAILED:
            return NotifyEvent.FAILED
        case JobStatus.PENDING if kind == LOSING:
            return NotifyEvent.LOST
        case JobStatus.SUSPENDED:
            if job.error_code == CHILD_WAITS or job.suspend_reason is SuspendReason.APPROVAL:
                return None  # the child's job, or the item, is what people are told of
            return NotifyEvent.LIMIT if job.suspend_reason in LIMITED else NotifyEvent.SUSPENDED
        case _:
            return None
