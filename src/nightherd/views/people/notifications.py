"""Notifications as every surface shows them: the targets, how they do, and what was sent or is to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

import msgspec

from nightherd.model.notifications.decisions import is_failing
from nightherd.model.notifications.notification import (
    Notification,
    NotificationQuery,
    NotificationStatus,
    TargetState,
)
from nightherd.model.notifications.target import NotifyEvent, NotifyTarget
from nightherd.model.push.subscription import PushSubscription, PushTopic
from nightherd.views.jobs.jobs import timestamp

if TYPE_CHECKING:
    from nightherd.ports import StateReader


class TargetView(msgspec.Struct, frozen=True, kw_only=True):
    """One target: what is declared and what is on record."""

    id: str
    declared: NotifyTarget | None = None
    state: TargetState | None = None
    waiting: int = 0
    """Notifications that are due and not sent."""
    device: PushSubscription | None = None
    """Set for a device with pushes."""

    @property
    def is_failing(self) -> bool:
        """Whether what was last sent to it was not taken."""
        return self.state is not None and is_failing(self.state)


class NotificationPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some notifications, newest first, and the cursor of the next page if there is one."""

    notifications: Sequence[Notification]
    next_before: int | None = None


def list_targets(
    reader: StateReader, declared: Iterable[NotifyTarget], now: datetime
) -> list[TargetView]:
    """Return every declared target, and those on record that still have something to send."""
    states = {state.id: state for state in reader.list_notify_targets()}
    waiting = reader.count_open_notifications(now)
    known = {target.id: target for target in declared}
    names = dict.fromkeys((*known, *(name for name in states if states[name].is_active)))
    devices = {one.target: one for one in reader.active_push_subscriptions()}
    return [
        TargetView(
            id=name,
            declared=known.get(name),
            state=states.get(name),
            waiting=waiting.get(name, 0),
            device=devices.get(name),
        )
        for name in names
    ]


def failing_targets(reader: StateReader) -> list[TargetState]:
    """Return the targets that do not take what they are sent."""
    return [state for state in reader.list_notify_targets() if is_failing(state)]


def list_notifications(reader: StateReader, query: NotificationQuery) -> NotificationPage:
    """Return a page of notifications."""
    found = reader.list_notifications(msgspec.structs.replace(query, limit=query.limit + 1))
    page = found[: query.limit]
    more = page[-1].number if len(found) > query.limit else None
    return NotificationPage(notifications=page, next_before=more)


class NotificationRow(TypedDict):
    """A notification that was sent or is to be."""

    id: str
    target: str
    event: NotifyEvent
    status: NotificationStatus
    subject: str
    agent: str | None
    schedule: str | None
    job_id: str | None
    item_id: str | None
    run_id: str | None
    created_at: str
    due_at: str
    give_up_at: str
    sent_at: str | None
    attempts: int
    last_error: str | None
    number: int


class FailingTargetRow(TypedDict):
    """A target that does not take what it is sent."""

    target: str
    failures: int
    failing_since: str | None
    last_error: str | None
    paused_until: str | None


class TargetDevice(TypedDict):
    """Whose device a target is, and what it is told about."""

    person: str
    label: str
    topics: list[PushTopic]


class TargetRow(FailingTargetRow):
    """A target of notifications, without its address."""

    events: list[NotifyEvent] | None
    is_failing: bool
    waiting: int
    last_sent_at: str | None
    device: TargetDevice | None


class NotificationsDocument(TypedDict):
    """The targets, and what was sent to them or is to be."""

    targets: list[TargetRow]
    notifications: list[NotificationRow]


class NotifyTestDocument(TypedDict):
    """A target that took a test message."""

    target: str
    sent: bool


def notifications_document(
    targets: Iterable[TargetView], page: NotificationPage
) -> NotificationsDocument:
    """Targets and a page of notifications as plain data."""
    return {
        "targets": [target_row(view) for view in targets],
        "notifications": [notification_row(one) for one in page.notifications],
    }


def notification_row(one: Notification) -> NotificationRow:
    """A notification as plain data."""
    return {
        "id": one.id,
        "target": one.target,
        "event": one.event,
        "status": one.status,
        "subject": one.subject,
        "agent": one.agent,
        "schedule": one.schedule,
        "job_id": one.job_id,
        "item_id": one.item_id,
        "run_id": one.run_id,
        "created_at": timestamp(one.created_at),
        "due_at": timestamp(one.due_at),
        "give_up_at": timestamp(one.give_up_at),
        "sent_at": timestamp(one.sent_at),
        "attempts": one.attempts,
        "last_error": one.last_error,
        "number": one.number,
    }


def target_row(view: TargetView) -> TargetRow:
    """A target as plain data, without its address."""
    declared, state = view.declared, view.state
    return {
        "target": view.id,
        "events": None if declared is None else sorted(declared.events),
        "is_failing": view.is_failing,
        "waiting": view.waiting,
        "failures": 0 if state is None else state.failures,
        "failing_since": None if state is None else timestamp(state.failing_since),
        "last_error": None if state is None else state.last_error,
        "paused_until": None if state is None else timestamp(state.paused_until),
        "last_sent_at": None if state is None else timestamp(state.last_sent_at),
        "device": None if view.device is None else _device(view.device),
    }


def _device(one: PushSubscription) -> TargetDevice:
    return TargetDevice(person=one.person, label=one.label, topics=list(one.topics))


def failing_row(state: TargetState) -> FailingTargetRow:
    """A target that fails, as `status` has it."""
    return {
        "target": state.id,
        "failures": state.failures,
        "failing_since": timestamp(state.failing_since),
        "last_error": state.last_error,
        "paused_until": timestamp(state.paused_until),
    }
