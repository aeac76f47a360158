"""Pushes: what a device is sent for one notification, and when its subscription ends."""

from __future__ import annotations

from nightherd.engine.notifications.context import NotifyContext
from nightherd.errors import NightherdError
from nightherd.model.access.web import Web, contact_of
from nightherd.model.notifications.notification import Notification
from nightherd.model.push.payload import Push, push_of
from nightherd.model.push.subscription import (
    PUSH_TIMEOUT,
    EndPushSubscriptions,
    PushEnd,
    PushId,
    PushSubscription,
)
from nightherd.ports import OutgoingPush, SendPush, SendResult

ENDED = "the device's subscription ended"


async def send_push(
    one: Notification, push_id: PushId, web: Web, send: SendPush, context: NotifyContext
) -> SendResult:
    """Send it to the device, once. A device whose login is not accepted any more is sent nothing, and ends."""
    subscription = context.reader.find_push_subscription(push_id)
    if subscription is None or not subscription.is_active:
        return SendResult(error=ENDED, is_permanent=True)
    try:
        reason = why_over(subscription, web, context.pushes.public_key())
    except NightherdError as error:
        return SendResult(error=error.message)
    if reason is not None:
        ending = EndPushSubscriptions(ids=(push_id,), at=context.clock.now(), reason=reason)
        await context.state.apply([ending])
        return SendResult(error=ENDED, is_permanent=True)
    item = None if one.item_id is None else context.reader.find_item(one.item_id)
    push = push_of(one, item, context.clock.now())
    return await send(outgoing_push(push, subscription, web))


def why_over(subscription: PushSubscription, web: Web, public_key: str) -> PushEnd | None:
    """Return why nothing may be sent to the device any more; None while it may."""
    if subscription.is_proxied and web.role_of(subscription.person) is None:
        return PushEnd.REVOKED
    return PushEnd.KEY_CHANGED if subscription.public_key != public_key else None


def outgoing_push(push: Push, subscription: PushSubscription, web: Web) -> OutgoingPush:
    """Return the push on its way to the device."""
    return OutgoingPush(
        endpoint=subscription.endpoint,
        p256dh=subscription.p256dh,
        auth=subscription.auth,
        payload=push.payload,
        topic=push.topic,
        ttl=push.ttl,
        is_urgent=push.is_urgent,
        contact=contact_of(web),
        timeout=PUSH_TIMEOUT,
        allow_hosts=web.push.allow_hosts,
    )
