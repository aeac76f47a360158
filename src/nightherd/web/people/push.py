"""`/v1/push`: a person's devices that take pushes. Each person sees and changes his own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Response
from pydantic import Field, StringConstraints

from nightherd.engine.operations.push import (
    NewDevice,
    end_lost_logins,
    find_device,
    subscribe,
    try_device,
    unsubscribe,
)
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.access.role import Role
from nightherd.model.inbox.token import secret_hash
from nightherd.model.push.subscription import ENDPOINT_LIMIT, PushSubscription, PushTopic
from nightherd.views.people.push import (
    PushDocument,
    PushSubscriptionRow,
    PushTestDocument,
    device_row,
    devices_of_person,
)
from nightherd.web.access.caller import FromCaller, needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.operations import FromSender
from nightherd.web.ports import Port
from nightherd.web.requests import Body, Line

KeyText = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Topic = Annotated[PushTopic, Field(strict=False)]

router = APIRouter(prefix="/v1/push", tags=["access"])


class DeviceKeys(Body):
    """The keys of a browser's subscription, as base64url."""

    p256dh: KeyText = Field(description="Public key that payloads are encrypted for.")
    auth: KeyText = Field(description="Authentication secret.")


class NewPushSubscription(Body):
    """A browser that subscribed, and what it is told."""

    endpoint: Annotated[str, StringConstraints(min_length=1, max_length=ENDPOINT_LIMIT)] = Field(
        description="Where the push service takes pushes for it."
    )
    keys: DeviceKeys
    label: Line = Field(description="What the person calls the device.")
    topics: Annotated[list[Topic], Field(min_length=1, max_length=len(PushTopic))] = Field(
        description="What it is told about."
    )


@router.get("", responses=answers("push", PushDocument))
@needs(Role.VIEWER)
async def show(site: OnSite, caller: FromCaller) -> Response:
    """Whether pushes can be sent, the key that a browser subscribes with, and the caller's devices."""
    reason, public_key = None, None
    try:
        public_key = await to_thread.run_sync(site.pushes.public_key)
    except NightherdError as error:
        reason = error.message
    rows = await site.ask(lambda reader: devices_of_person(reader, caller.name))
    data = PushDocument(
        available=public_key is not None,
        reason=reason,
        public_key=public_key,
        subscriptions=rows,
    )
    return document("push", data, site.context.clock.now())


@router.post(
    "/subscriptions",
    status_code=201,
    responses=answers("push_subscription", PushSubscriptionRow, 409, status=201),
)
@needs(Role.VIEWER)
async def add(
    site: OnSite, sender: FromSender, caller: FromCaller, body: NewPushSubscription
) -> Response:
    """Send pushes to a device of the caller, from now on. The same endpoint again changes what it is told.

    It ends with the login that it was made in: when that logs out, or its token is revoked.
    """
    await sender.must_be_person("subscribe a device")
    device = NewDevice(
        endpoint=body.endpoint,
        p256dh=body.keys.p256dh,
        auth=body.keys.auth,
        label=body.label,
        inbox=PushTopic.INBOX in body.topics,
        failures=PushTopic.FAILURES in body.topics,
        person=caller.name,
        token_hash=caller.token_hash,
        session_id=caller.session_id,
        is_proxied=caller.is_proxied,
    )
    now = site.context.clock.now()
    subscription = await subscribe(
        device,
        site.context.state,
        at=now,
        random_text=site.context.random_text,
        change=await to_thread.run_sync(site.ledger_end),
        public_key=await to_thread.run_sync(site.pushes.public_key),
    )
    row = await site.ask(lambda reader: device_row(reader, subscription))
    return document("push_subscription", row, now, status=201)


@router.delete(
    "/subscriptions/{subscription}",
    responses=answers("push_subscription", PushSubscriptionRow, 404),
)
@needs(Role.VIEWER)
async def remove(site: OnSite, caller: FromCaller, subscription: str) -> Response:
    """Send no more pushes to a device of the caller."""
    now, context = site.context.clock.now(), site.context
    ended = await unsubscribe(
        subscription, context.state, context.reader, person=caller.name, at=now
    )
    row = await site.ask(lambda reader: device_row(reader, ended))
    return document("push_subscription", row, now)


@router.post(
    "/subscriptions/{subscription}/test", responses=answers("push_test", PushTestDocument, 404, 409)
)
@needs(Role.VIEWER)
async def try_one(
    site: OnSite, sender: FromSender, caller: FromCaller, subscription: str
) -> Response:
    """Send a device of the caller a push, now, and say what the push service answered."""
    await sender.must_be_person("send a push")
    device = await _find(site, subscription, caller.name)
    if not device.is_active:
        raise RefusedError(
            f"the subscription {device.id} has ended", hint="subscribe the device again"
        )
    context = site.context
    async with site.push_trials:
        result = await try_device(
            device, site.fleet().web, site.pushes, context.state, at=context.clock.now()
        )
    device = await _find(site, subscription, caller.name)
    error = None if result.error is None else str(context.secrets.mask(result.error))
    data = PushTestDocument(
        id=device.id,
        sent=error is None,
        error=error,
        subscription=await site.ask(lambda reader: device_row(reader, device)),
    )
    return document("push_test", data, context.clock.now())


async def end_devices_without_login(site: ApiContext, ports: Iterable[Port]) -> None:
    """End the devices whose login is not accepted any more: the fleet's own token, or who may come in, has changed."""
    web = site.fleet().web
    if not web.enabled:
        return
    tokens = [port.door.identify.token for port in ports]
    context = site.context
    await end_lost_logins(
        context.state,
        context.reader,
        web,
        own_tokens=[secret_hash(token) for token in tokens if token is not None],
        at=context.clock.now(),
    )


async def _find(site: ApiContext, subscription: str, person: str) -> PushSubscription:
    return await site.ask(lambda reader: find_device(subscription, reader, person))
