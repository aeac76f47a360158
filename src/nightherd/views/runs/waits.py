"""What the open nodes of a run wait for, and what continues them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TypedDict

import msgspec

from nightherd.model.agents.state import stands_for_workflow
from nightherd.model.inbox.item import InboxItem, ItemKind
from nightherd.model.jobs.failure import advice_on
from nightherd.model.jobs.job import JobStatus, SuspendReason
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.limits.limits import LimitName, Limits
from nightherd.model.sessions.order import ahead_text
from nightherd.model.units import format_duration
from nightherd.model.workflows.conductor.pinned import read_pinned
from nightherd.model.workflows.conductor.run_usage import run_limits
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RUN_ID, RunStatus
from nightherd.next_step import Action, Advice, NextStep, SpellStep
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import timestamp

ANSWERS = {
    ItemKind.APPROVAL: Action.ANSWER_INBOX_ITEM,
    ItemKind.QUESTION: Action.ANSWER_QUESTION,
    ItemKind.LIMIT: Action.RAISE_ITEM,
    ItemKind.FAILURE: Action.RETRY_ITEM,
    ItemKind.RELOAD: Action.ACCEPT_ITEM,
}


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """What an open node waits for."""

    kind: str
    """`person`, `event`, `time`, `run`, `job` or `worker`."""
    text: str
    until: datetime | None = None
    """When it continues by itself, or is over."""
    item_id: str | None = None
    advice: Advice = Advice()
    """What continues it; empty when it continues by itself."""


def wait_of(
    reader: StateReader,
    run: WorkflowRun,
    node: WorkflowNode,
    job: ObservedJob | None,
    item: InboxItem | None,
    child: WorkflowRun | None,
    agents: Collection[str] | None = None,
) -> Wait | None:
    """Return what a node that has not ended waits for; None while it is worked on.

    `agents` are those of the fleet, where they are known: a job of another one waits until it is declared again.
    """
    match node.kind:
        case NodeKind.GATE:
            return None if item is None else _for_person(item)
        case NodeKind.WAIT if node.event is not None:
            step = NextStep(Action.SIGNAL_RUN, run=run.id, event=node.event)
            text = f"the event {node.event}"
            return Wait(kind="event", text=text, until=node.due_at, advice=Advice(step=step))
        case NodeKind.WAIT:
            return Wait(kind="time", text="its time", until=node.due_at)
        case NodeKind.CHILD:
            return _for_child(child)
        case _:
            return None if job is None else _for_job(reader, run, job, agents)


def _for_person(item: InboxItem) -> Wait:
    step = NextStep(ANSWERS[item.kind], item=item.id)
    return Wait(
        kind="person",
        text=item.title,
        until=item.expires_at,
        item_id=item.id,
        advice=Advice(step=step),
    )


def _for_child(child: WorkflowRun | None) -> Wait | None:
    if child is None or child.status is RunStatus.RUNNING:
        return None
    step = NextStep(Action.SHOW_RUN, run=child.id)
    return Wait(
        kind="run", text=f"{child.id}, which {child.status.phrase}", advice=Advice(step=step)
    )


def _for_job(
    reader: StateReader, run: WorkflowRun, job: ObservedJob, agents: Collection[str] | None
) -> Wait | None:
    if job.lost is not None:
        return Wait(
            kind="worker",
            text=f"{job.id} lost its worker",
            advice=Advice(job.lost.next, job.lost.next_step),
        )
    if job.status is JobStatus.PENDING:
        if job.waits_behind is not None:
            return Wait(kind="job", text=ahead_text(job.waits_behind))
        if agents is not None and job.agent not in agents and not stands_for_workflow(job.agent):
            text = f"the fleet file has no agent {job.agent!r}; declare it again, or cancel the run"
            step = NextStep(Action.CANCEL_RUN, run=run.id)
            return Wait(kind="worker", text=text, advice=Advice(step=step))
        return Wait(kind="worker", text="a worker")
    if job.status is not JobStatus.SUSPENDED:
        return None
    reason = job.error or "it is suspended"
    if job.resumes_at is not None:
        return Wait(kind="time", text=reason, until=job.resumes_at)
    if job.suspend_reason is SuspendReason.BUDGET and RUN_ID.search(reason) is not None:
        return Wait(kind="person", text=reason, advice=advice_on(job))
    if job.suspend_reason is SuspendReason.LIMIT and job.error_code == LimitName.DURATION.code:
        wait = _for_time_of_run(reader, run, job)
        if wait is not None:
            return wait
    asked = [one for one in reader.items_of_job(job.id) if one.is_pending]
    if asked:
        return _for_person(asked[0])
    return Wait(kind="person", text=reason, advice=advice_on(job))


def _for_time_of_run(reader: StateReader, run: WorkflowRun, job: ObservedJob) -> Wait | None:
    """What a job waits for whose run, or a run above it, has no time left; None when the limit is the job's own."""
    worked = sum(execution.duration_ms or 0 for execution in reader.list_executions(job.id))
    above: WorkflowRun | None = run
    while above is not None:
        worked += above.worked_ms
        pinned = reader.find_pinned(above.definition_hash)
        declared = Limits() if pinned is None else read_pinned(pinned.body).definition.limits
        most = run_limits(above, declared).get(LimitName.DURATION.value)
        if most is not None and worked >= most:
            limit = timedelta(milliseconds=most)
            text = f"duration: the limit of {format_duration(limit)} of {above.id}"
            step = NextStep(
                Action.RAISE_RUN_LIMIT,
                run=above.id,
                limit=LimitName.DURATION.value,
                maximum=format_duration(max(2 * limit, timedelta(milliseconds=worked))),
            )
            return Wait(kind="person", text=text, advice=Advice(step=step))
        above = reader.find_run(above.parent_run_id) if above.parent_run_id is not None else None
    return None


WaitRow = TypedDict(
    "WaitRow",
    {"for": str, "what": str, "until": str | None, "item_id": str | None, "next": str | None},
)
"""What is waited for, and what continues it."""


def wait_row(wait: Wait, spell: SpellStep | None = None) -> WaitRow:
    """Return what is waited for as plain data; `spell` writes the step that continues it."""
    return {
        "for": wait.kind,
        "what": wait.text,
        "until": timestamp(wait.until),
        "item_id": wait.item_id,
        "next": wait.advice.text(spell),
    }
