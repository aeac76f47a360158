"""Queueing digests when they are due, each once, also after a time in which nothing ran."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from anyio import lowlevel

from nightherd.engine.notifications.context import NotifyContext
from nightherd.model.agents.agent import Fleet
from nightherd.model.inbox.item import InboxItem, InboxQuery
from nightherd.model.jobs.job import Job, JobQuery
from nightherd.model.notifications.changes import QueueNotifications
from nightherd.model.notifications.digest import MOST, DigestFacts, digest_fields, last_due
from nightherd.model.notifications.notification import (
    Notification,
    NotificationStatus,
    NotificationTexts,
    Queued,
    notification_id,
)
from nightherd.model.notifications.target import NotifyEvent, NotifyTarget
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.views.jobs.jobs import every_job

LONGEST_JOB = timedelta(days=7)
"""How long before the digest's time a job may have been submitted to be looked at."""
LONGEST_RUN = timedelta(days=90)
"""The same for a run: it may have waited for people."""
PAGE = 200


async def queue_digests(fleet: Fleet, context: NotifyContext) -> bool:
    """Queue the digests that have become due; whether there was one."""
    wanted = [target for target in fleet.notify if target.digest is not None]
    if not wanted:
        return False
    now = context.clock.now()
    states = {state.id: state for state in context.reader.list_notify_targets()}
    has_queued = False
    for target in wanted:
        state = states.get(target.id)
        due = last_due(target.digest, now) if target.digest is not None else None
        if state is None or state.digest_at is None or due is None or due <= state.digest_at:
            continue
        facts = await digest_facts(state.digest_at, due, context)
        change = QueueNotifications(queued=(_queued(target, facts, context, now),), digest_at=due)
        await context.state.apply([change])
        has_queued = True
    return has_queued


async def digest_facts(since: datetime, until: datetime, context: NotifyContext) -> DigestFacts:
    """Return what ended in that time, and what waits now."""
    ended: list[Job] = []
    for number, job in enumerate(every_job(context.reader, JobQuery(limit=PAGE))):
        if number % PAGE == 0:
            await lowlevel.checkpoint()  # jobs go on meanwhile
        if job.created_at < since - LONGEST_JOB:
            break
        if job.finished_at is not None and since < job.finished_at <= until:
            ended.append(job)
    waiting = context.reader.list_items(InboxQuery(limit=MOST))
    return DigestFacts(
        since=since,
        until=until,
        ended=ended,
        waiting=waiting,
        waiting_count=sum(context.reader.count_pending_items().values()),
        runs=await _ended_runs(since, until, context),
        workflows=_workflows_of(waiting, context),
    )


async def _ended_runs(
    since: datetime, until: datetime, context: NotifyContext
) -> list[WorkflowRun]:
    """The runs that ended in that time, without those that other runs started."""
    ended: list[WorkflowRun] = []
    query = RunQuery(limit=PAGE)
    while True:
        page = context.reader.list_runs(query)
        ended += (
            run
            for run in page
            if run.parent_run_id is None
            and run.finished_at is not None
            and since < run.finished_at <= until
        )
        if len(page) < PAGE or page[-1].started_at < since - LONGEST_RUN:
            return ended
        query = RunQuery(limit=PAGE, before=page[-1].number)
        await lowlevel.checkpoint()


def _workflows_of(items: Sequence[InboxItem], context: NotifyContext) -> dict[str, str]:
    ids = {RunId(item.workflow_run_id) for item in items if item.workflow_run_id is not None}
    runs = (context.reader.find_run(run_id) for run_id in sorted(ids))
    return {run.id: run.workflow_name for run in runs if run is not None}


def _queued(
    target: NotifyTarget, facts: DigestFacts, context: NotifyContext, now: datetime
) -> Queued:
    fields = context.secrets.mask(digest_fields(facts, context.spell))
    key = f"digest:{facts.until:%Y-%m-%dT%H:%M}:{target.id}"
    notification = Notification(
        id=notification_id(key),
        target=target.id,
        event=NotifyEvent.DIGEST,
        status=NotificationStatus.PENDING,
        created_at=now,
        due_at=now,
        give_up_at=now + target.give_up_after,
        dedupe_key=key,
        subject=str(fields["title"]),
    )
    texts = NotificationTexts(notification_id=notification.id, fields=fields)
    return Queued(notification=notification, texts=texts)
