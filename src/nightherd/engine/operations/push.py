"""Devices that take pushes: subscribed and removed by their own person, tried, and ended with their login."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from nightherd.engine.notifications.pushes import ENDED, outgoing_push, why_over
from nightherd.errors import InvalidValueError, NotFoundError, RefusedError
from nightherd.model.access.web import Web
from nightherd.model.change import Change, Refused, Why
from nightherd.model.ids import RandomText
from nightherd.model.notifications.changes import RetryTarget
from nightherd.model.push.keys import check_auth, check_p256dh
from nightherd.model.push.payload import trial_push
from nightherd.model.push.subscription import (
    ID_PREFIX,
    AddPushSubscription,
    EndPushSubscriptions,
    PushEnd,
    PushId,
    PushStatus,
    PushSubscription,
    service_of,
)
from nightherd.ports import PushReader, PushSender, SendResult, StateReader, StateWriter

ID_LENGTH = 12


class NewDevice(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser gives to be sent pushes, and in which login."""

    endpoint: str
    p256dh: str
    auth: str
    label: str
    inbox: bool
    failures: bool
    person: str
    token_hash: str | None = None
    session_id: str | None = None
    is_proxied: bool = False

    def __repr__(self) -> str:
        # The endpoint and the keys are secrets.
        return f"NewDevice(label={self.label!r}, person={self.person!r})"


async def subscribe(
    device: NewDevice,
    state: StateWriter,
    *,
    at: datetime,
    random_text: RandomText,
    change: int,
    public_key: str,
) -> PushSubscription:
    """Subscribe a device, or change what the same browser of the same person is told.

    It is told what happens after the ledger's `change`. `InvalidValueError` for an address or keys that cannot be
    used, `RefusedError` for one device too many.
    """
    if not (device.inbox or device.failures):
        raise InvalidValueError("choose at least one topic")
    subscription = PushSubscription(
        id=PushId(ID_PREFIX + random_text(ID_LENGTH)),
        person=device.person,
        status=PushStatus.ACTIVE,
        inbox=device.inbox,
        failures=device.failures,
        label=device.label,
        service=service_of(device.endpoint),
        endpoint=device.endpoint,
        p256dh=check_p256dh(device.p256dh),
        auth=check_auth(device.auth),
        public_key=public_key,
        token_hash=device.token_hash,
        session_id=device.session_id,
        is_proxied=device.is_proxied,
        created_at=at,
    )
    adding = AddPushSubscription(subscription=subscription, change=change)
    (answer,) = await state.apply([adding])
    if isinstance(answer, Refused):
        if answer.why is Why.FULL:
            raise RefusedError(answer.message, hint="remove a device that is not used any more")
        raise RefusedError(answer.message)
    return next(row for row in answer.rows if isinstance(row, PushSubscription) and row.is_active)


def find_device(push_id: str, reader: PushReader, person: str) -> PushSubscription:
    """Return a device of the person; `NotFoundError` for what is not there, and for somebody else's."""
    found = reader.find_push_subscription(push_id)
    if found is None or found.person != person:
        raise NotFoundError(f"{person} has no device {push_id!r}")
    return found


async def unsubscribe(
    push_id: str, state: StateWriter, reader: PushReader, *, person: str, at: datetime
) -> PushSubscription:
    """Send no more pushes to a device of the person. One that has ended stays as it is."""
    found = find_device(push_id, reader, person)
    if found.is_active:
        ending = EndPushSubscriptions(ids=(found.id,), at=at, reason=PushEnd.REMOVED)
        await state.apply([ending])
        found = find_device(push_id, reader, person)
    return found


async def try_device(
    subscription: PushSubscription,
    web: Web,
    pushes: PushSender,
    state: StateWriter,
    *,
    at: datetime,
) -> SendResult:
    """Send a device a push that says nothing, now. If it was failing and takes it, what waits for it is due at once.

    `NightherdError` where no push can be sent.
    """
    reason = why_over(subscription, web, pushes.public_key())
    if reason is None:
        async with pushes.batch() as send:
            result = await send(outgoing_push(trial_push(), subscription, web))
        reason = PushEnd.GONE if result.is_gone else None
    else:
        result = SendResult(error=ENDED, is_permanent=True)
    changes: list[Change] = []
    if reason is not None:
        changes.append(EndPushSubscriptions(ids=(subscription.id,), at=at, reason=reason))
    elif result.error is None:
        changes.append(RetryTarget(target=subscription.target, at=at))
    if changes:
        await state.apply(changes)
    return result


async def end_lost_logins(
    state: StateWriter,
    reader: StateReader,
    web: Web,
    *,
    own_tokens: Iterable[str],
    at: datetime,
) -> int:
    """End the devices whose login is not accepted any more; return how many.

    `own_tokens` are the hashes of the fleet's own tokens: whoever replaces one logs out what was subscribed with it.
    """
    accepted = frozenset(own_tokens)
    lost = [
        one.id for one in reader.active_push_subscriptions() if _is_lost(one, reader, web, accepted)
    ]
    if lost:
        ending = EndPushSubscriptions(ids=tuple(lost), at=at, reason=PushEnd.REVOKED)
        await state.apply([ending])
    return len(lost)


def _is_lost(
    one: PushSubscription, reader: StateReader, web: Web, accepted: frozenset[str]
) -> bool:
    if one.is_proxied:
        return web.identity_header is None or web.role_of(one.person) is None
    if one.token_hash is None or one.token_hash in accepted:
        return False
    return reader.find_token(one.token_hash) is None
