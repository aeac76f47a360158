"""Delivering: the next notification of a target is claimed, sent and settled, one after another.

A process that is killed between sending and settling leaves a claim that passes; then the same message is sent again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
from msgspec.structs import replace

from nightherd.engine.notifications.context import NotifyContext
from nightherd.engine.notifications.links import AnswerLinks
from nightherd.engine.notifications.pushes import send_push
from nightherd.errors import InvalidValueError
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import Change, Refused
from nightherd.model.log import LogLevel, LogLine
from nightherd.model.notifications.changes import ClaimNotification, SettleNotification
from nightherd.model.notifications.digest import digest_texts
from nightherd.model.notifications.message import Message, render_message
from nightherd.model.notifications.notification import Notification, NotificationStatus
from nightherd.model.notifications.routing import targets_for
from nightherd.model.notifications.target import NotifyEvent, NotifyTarget
from nightherd.model.push.subscription import EndPushSubscriptions, PushEnd
from nightherd.ports import Outgoing, Send, SendResult

Carry = Callable[[Notification], Awaitable[SendResult]]
"""Sends one notification, once."""
LEASE_MARGIN = timedelta(seconds=30)
"""How much longer than its timeout a claim lasts: starting the process, and settling."""


async def deliver(target: NotifyTarget, fleet: Fleet, context: NotifyContext) -> int:
    """Send what is due for the target until something fails or nothing is left; return how many were sent."""
    sent = 0
    async with _carrier(target, fleet, context) as carry:
        while True:
            claimed = await _claim(target, context)
            if claimed is None:
                return sent
            context.probe("notify.claimed")
            result = await _result(claimed, carry, context)
            context.probe("notify.sent")
            with anyio.CancelScope(shield=True):
                # What was sent is settled: else it would be sent once more.
                is_settled = await _settle(claimed, result, target, context)
            context.probe("notify.settled")
            if not is_settled or (result.error is not None and not result.is_permanent):
                return sent
            sent += result.error is None


async def _claim(target: NotifyTarget, context: NotifyContext) -> Notification | None:
    """The next one, this process's own; None when nothing is due."""
    while True:
        now = context.clock.now()
        claim = ClaimNotification(
            target=target.id, by=context.by, at=now, until=now + target.timeout + LEASE_MARGIN
        )
        (answer,) = await context.state.apply([claim])
        if isinstance(answer, Refused):
            return None
        for row in answer.rows:
            if isinstance(row, Notification) and row.status is NotificationStatus.SENDING:
                return row
        # Only such that nobody needs any more were there: the next ones may be due.


def _as_told(one: Notification, target: NotifyTarget, fleet: Fleet) -> NotifyTarget:
    """The target as the agent or schedule that it is about declares it: templates may differ."""
    return targets_for(fleet, one.agent, one.schedule).get(one.target, target)


async def _result(one: Notification, carry: Carry, context: NotifyContext) -> SendResult:
    """Send it once. Whatever goes wrong is a result: nothing here may end the notifier."""
    try:
        result = await carry(one)
    except InvalidValueError as error:
        return SendResult(error=error.message)
    except Exception as error:  # noqa: BLE001 (an edge: the next try may work)
        return SendResult(error=f"sending failed: {type(error).__name__}")
    if result.error is None:
        return result
    return replace(result, error=str(context.secrets.mask(result.error)))


@asynccontextmanager
async def _carrier(
    target: NotifyTarget, fleet: Fleet, context: NotifyContext
) -> AsyncIterator[Carry]:
    """Open what carries notifications to the target: pushes to a device, messages to any other."""
    device = target.device
    if device is not None:
        async with context.pushes.batch() as push:
            yield lambda one: send_push(one, device.id, fleet.web, push, context)
    else:
        async with context.sender.batch() as send:
            yield lambda one: _send_message(one, _as_told(one, target, fleet), fleet, send, context)


async def _send_message(
    one: Notification, target: NotifyTarget, fleet: Fleet, send: Send, context: NotifyContext
) -> SendResult:
    links = AnswerLinks(fleet, target, context)
    message = _message(target, one, links, context)
    outgoing = Outgoing(
        url=target.address(context.environment),
        message=message,
        timeout=target.timeout,
        allow_hosts=target.allow_hosts,
    )
    await links.record()
    return await send(outgoing)


def _message(
    target: NotifyTarget, one: Notification, links: AnswerLinks, context: NotifyContext
) -> Message:
    texts = context.reader.find_notification_texts(one.id)
    fields = dict(texts.fields) if texts is not None else {"title": one.subject}
    is_digest = one.event is NotifyEvent.DIGEST
    if is_digest:
        fields = digest_texts(fields, links)
    return render_message(
        fields,
        target=target.id,
        spell=context.spell,
        link=None if one.item_id is None else links(one.item_id),
        title=None if is_digest else target.title,
        template=None if is_digest else target.template,
    )


async def _settle(
    one: Notification, result: SendResult, target: NotifyTarget, context: NotifyContext
) -> bool:
    """Record what came of it, and say so to operators; False when the claim had passed."""
    settling = SettleNotification(
        notification_id=one.id,
        by=context.by,
        at=context.clock.now(),
        error=result.error,
        is_permanent=result.is_permanent,
        retry_after=result.retry_after,
    )
    changes: list[Change] = [settling]
    if result.is_gone and target.device is not None:
        changes.append(
            EndPushSubscriptions(ids=(target.device.id,), at=settling.at, reason=PushEnd.GONE)
        )
    answer, *_ = await context.state.apply(changes)
    if isinstance(answer, Refused):
        return False
    if result.error is not None:
        rows = [row for row in answer.rows if isinstance(row, Notification)]
        is_over = any(row.status is NotificationStatus.FAILED for row in rows)
        context.log.write(
            LogLine(
                at=settling.at,
                level=LogLevel.ERROR if is_over else LogLevel.WARNING,
                event="notification.given_up" if is_over else "notification.failed",
                agent=one.agent,
                job=one.job_id,
                message=result.error,
                data={"target": one.target, "notification": one.id, "attempts": one.attempts},
            )
        )
    return True
