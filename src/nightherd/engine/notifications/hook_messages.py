"""Hooks that write to a channel: their messages go into the outbox, and cost the job one small transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.engine.contexts import Stores
from nightherd.model.change import Refused
from nightherd.model.hooks import ChatMessage, Hook, HookEvent
from nightherd.model.jobs.job import Job
from nightherd.model.notifications.changes import QueueNotifications
from nightherd.model.notifications.message import WHAT_LIMIT, one_line
from nightherd.model.notifications.notification import (
    Notification,
    NotificationStatus,
    NotificationTexts,
    Queued,
    notification_id,
)
from nightherd.model.notifications.routing import hook_target
from nightherd.model.notifications.target import NotifyEvent
from nightherd.model.text import shorten, whole_text
from nightherd.model.units import format_usd
from nightherd.next_step import Action
from nightherd.ports import HookResult

EVENTS = {
    HookEvent.COMPLETED: NotifyEvent.COMPLETED,
    HookEvent.FAILED: NotifyEvent.FAILED,
    HookEvent.TIMEOUT: NotifyEvent.FAILED,
    HookEvent.CANCELLED: NotifyEvent.FAILED,
    HookEvent.SUSPENDED: NotifyEvent.SUSPENDED,
}


async def queue_hook_message(
    hook: Hook, message: ChatMessage, job: Job, payload: Mapping[str, Any], context: Stores
) -> HookResult:
    """Queue what the hook says about this end of the job; once, however often it is asked for."""
    target, now = hook_target(job.agent, hook.id, message), context.clock.now()
    event = HookEvent(payload["event"])
    which = f"{event.value}:{job.epoch}" if event is HookEvent.SUSPENDED else event.value
    key = f"hook:{job.id}:{hook.id}:{which}"
    result = payload["result"]
    told = whole_text(str(result["error"] or result["output"] or ""))
    title = one_line(str(context.secrets.mask(f"{job.agent} {event.value}")))
    fields = {
        "event": event.value,
        "agent": job.agent,
        "job": job.id,
        "title": title,
        "what": shorten(str(context.secrets.mask(told)), WHAT_LIMIT),
        "cost": format_usd(job.cost_microusd),
        "steps": [Action.SHOW_JOB.value],
    }
    notification = Notification(
        id=notification_id(key),
        target=target.id,
        event=EVENTS[event],
        status=NotificationStatus.PENDING,
        created_at=now,
        due_at=now,
        give_up_at=now + target.give_up_after,
        dedupe_key=key,
        subject=title,
        job_id=job.id,
        agent=job.agent,
        schedule=job.schedule,
    )
    texts = NotificationTexts(notification_id=notification.id, fields=fields)
    queued = QueueNotifications(queued=(Queued(notification=notification, texts=texts),))
    (answer,) = await context.state.apply([queued])
    if isinstance(answer, Refused):
        return HookResult(success=False, error=answer.message)
    return HookResult(success=True, output=f"queued as {notification.id}")
