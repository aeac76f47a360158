"""What one change of the ledger means to people: at most one event for each job, run or inbox item that it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

import msgspec

from nightherd.model.inbox.item import InboxItem, ItemKind
from nightherd.model.jobs.job import CHILD_WAITS, Job, JobStatus, SuspendReason
from nightherd.model.notifications.target import NotifyEvent, NotifyTarget
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunStatus

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
OF_RUN = {
    RunStatus.SUCCEEDED: NotifyEvent.COMPLETED,
    RunStatus.FAILED: NotifyEvent.FAILED,
}
LIMITED = frozenset({SuspendReason.LIMIT, SuspendReason.BUDGET})


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Something that people may want to be told."""

    event: NotifyEvent
    key: str
    """The same however often the same is read."""
    job: Job | None = None
    item: InboxItem | None = None
    run: WorkflowRun | None = None
    """The run that ended."""
    node: WorkflowNode | None = None
    """The phase that has a message."""

    def is_wanted(self, events: frozenset[NotifyEvent]) -> bool:
        """Whether it is one of `events`; a job that waits for a person is suspended too."""
        is_waiting = self.event in (NotifyEvent.APPROVAL, NotifyEvent.QUESTION, NotifyEvent.LIMIT)
        return self.event in events or (is_waiting and NotifyEvent.SUSPENDED in events)

    def is_told_to(self, target: NotifyTarget) -> bool:
        """Whether the target is to be told: by its events, or a device by its topics."""
        if target.device is None:
            return self.is_wanted(target.events)
        is_failure = self.event is NotifyEvent.FAILED
        return (target.device.inbox and self.item is not None) or (
            target.device.failures and is_failure
        )

    @property
    def agent(self) -> str | None:
        """Whose it is; None for runs and their gates."""
        about = self.job or self.item
        return about.agent if about is not None else None

    @property
    def schedule(self) -> str | None:
        """The schedule it came from."""
        about = self.job or self.item or self.run
        return about.schedule if about is not None else None

    @property
    def run_id(self) -> str | None:
        """The workflow run that it belongs to."""
        if self.node is not None:
            return self.node.run_id
        if self.run is not None:
            return self.run.id
        about = self.job or self.item
        return about.workflow_run_id if about is not None else None


def happenings(
    kind: str,
    jobs: Sequence[Job],
    items: Sequence[InboxItem],
    runs: Sequence[WorkflowRun] = (),
    nodes: Sequence[WorkflowNode] = (),
) -> Iterator[Happening]:
    """Yield what a change of that kind means, given the rows that it wrote, each as the change left it.

    `nodes` has every image of a node: a phase may begin and end in one change, with a message for both.
    """
    if kind in SILENT:
        return
    yield from _messages(nodes)
    yield from _of_jobs(kind, jobs, items)
    for run in runs:
        event = OF_RUN.get(run.status)
        if event is None or run.parent_run_id is not None:
            continue  # a run that another one started is told of by that
        asked = next((one for one in items if _is_about(one, run)), None)
        yield Happening(event=event, key=f"run:{run.id}:{event.value}", run=run, item=asked)


def _is_about(item: InboxItem, run: WorkflowRun) -> bool:
    """Whether the item asks what to do about a run that failed."""
    is_failure = item.kind is ItemKind.FAILURE and item.node_id is None
    return is_failure and item.is_pending and item.workflow_run_id == run.id


def _messages(nodes: Sequence[WorkflowNode]) -> Iterator[Happening]:
    """What phases say. A row keeps its message when it is written again, so the key has the text."""
    for node in nodes:
        if node.message is not None and node.kept_from is None:
            text = sha256(node.message.encode(errors="surrogatepass")).hexdigest()[:12]
            key = f"node:{node.id}:message:{text}"
            yield Happening(event=NotifyEvent.MESSAGE, key=key, node=node)


def _of_jobs(kind: str, jobs: Sequence[Job], items: Sequence[InboxItem]) -> Iterator[Happening]:
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
    """What has happened to the job; jobs that other jobs or runs made are told of by those."""
    is_part = job.parent_job_id is not None or job.node_id is not None
    if is_part and job.status is not JobStatus.SUSPENDED:
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
