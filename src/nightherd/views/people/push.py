"""Devices with pushes as documents: nothing that pushes could be sent with."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from nightherd.model.notifications.decisions import is_failing
from nightherd.model.notifications.notification import TargetState
from nightherd.model.push.subscription import PushEnd, PushStatus, PushSubscription, PushTopic
from nightherd.model.text import utc_text
from nightherd.views.jobs.jobs import timestamp

if TYPE_CHECKING:
    from nightherd.ports import StateReader


class PushSubscriptionRow(TypedDict):
    """A device that takes pushes, or has taken them."""

    id: str
    person: str
    label: str
    service: str
    topics: list[PushTopic]
    status: PushStatus
    created_at: str
    ended_at: str | None
    end_reason: PushEnd | None
    is_failing: bool
    last_sent_at: str | None
    last_error: str | None


class PushDocument(TypedDict):
    """Whether pushes can be sent, the key to subscribe with, and the person's devices, newest first."""

    available: bool
    reason: str | None
    public_key: str | None
    subscriptions: list[PushSubscriptionRow]


class PushTestDocument(TypedDict):
    """What came of a push that was sent to try a device."""

    id: str
    sent: bool
    error: str | None
    subscription: PushSubscriptionRow


def devices_of_person(reader: StateReader, person: str) -> list[PushSubscriptionRow]:
    """Return the active devices of a person, the newest first."""
    states = {state.id: state for state in reader.list_notify_targets()}
    mine = [one for one in reader.active_push_subscriptions() if one.person == person]
    return [subscription_row(one, states.get(one.target)) for one in reversed(mine)]


def device_row(reader: StateReader, one: PushSubscription) -> PushSubscriptionRow:
    """One device, with how sending to it goes."""
    states = reader.list_notify_targets()
    return subscription_row(one, next((two for two in states if two.id == one.target), None))


def subscription_row(one: PushSubscription, state: TargetState | None) -> PushSubscriptionRow:
    """A device as documents have it."""
    return PushSubscriptionRow(
        id=one.id,
        person=one.person,
        label=one.label,
        service=one.service,
        topics=list(one.topics),
        status=one.status,
        created_at=utc_text(one.created_at),
        ended_at=timestamp(one.ended_at),
        end_reason=one.end_reason,
        is_failing=state is not None and is_failing(state),
        last_sent_at=None if state is None else timestamp(state.last_sent_at),
        last_error=None if state is None else state.last_error,
    )
