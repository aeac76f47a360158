"""`nightherd notify`: the targets, and what was sent to them or is to be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import (
    Invocation,
    before_option,
    json_option,
    page_option,
    status_option,
)
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import (
    PAGE,
    Screen,
    neutralise,
    next_page,
    one_line,
    relative,
    table,
)
from nightherd.errors import ConfigError
from nightherd.model.notifications.notification import (
    Notification,
    NotificationQuery,
    NotificationStatus,
)
from nightherd.model.notifications.routing import with_bots
from nightherd.model.notifications.target import NotifyTarget
from nightherd.views.people.notifications import (
    TargetView,
    list_notifications,
    list_targets,
    notifications_document,
)
from nightherd.wiring.stores import open_reader, system_clock

TARGETS = ("TARGET", "STATUS", "WAITING", "LAST SENT", "ABOUT")
HEADING = ("ID", "TARGET", "EVENT", "STATUS", "AGE", "SUBJECT")


@click.group(
    "notify",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.notifications.list:list_all", "List notifications."),
        "test": Entry("nightherd.cli.notifications.test:test", "Send a test message to a target."),
    },
    default="list",
    epilog="Example: nightherd notify test phone",
)
def notify() -> None:
    """List notifications and test their targets."""


@click.command("list", epilog="Example: nightherd notify list --status failed")
@click.option("--target", metavar="TARGET", help="Show only this target.")
@status_option(NotificationStatus, "notifications")
@page_option(PAGE)
@before_option
@json_option
@click.pass_obj
def list_all(
    invocation: Invocation,
    target: str | None,
    status: str | None,
    limit: int,
    before: int | None,
) -> None:
    """List notifications. Shows the targets first, then the newest notifications, and why they failed."""
    screen, now = invocation.screen, system_clock().now()
    query = NotificationQuery(
        target=target,
        status=NotificationStatus(status) if status else None,
        before=before,
        limit=limit,
    )
    declared = _declared(invocation)
    with closing(open_reader(invocation.state_directory())) as reader:
        views = list_targets(reader, declared, now)
        page = list_notifications(reader, query)
    shown = [view for view in views if target in (None, view.id)]
    if screen.is_json:
        data = notifications_document(shown, page)
        screen.document("notifications", data, now, next_before=page.next_before)
        return
    if not shown and not page.notifications:
        screen.say("no notify targets; add them under notify: in the fleet file")
        return
    if shown and before is None:
        screen.show(target_table(shown, screen, now))
    if page.notifications:
        screen.show(notification_table(page.notifications, screen, now))
    if page.next_before is not None:
        screen.flush()
        command = next_page(
            "nightherd notify list", page.next_before, limit, target=target, status=status
        )
        screen.say(f"more: {neutralise(command)}")


def _declared(invocation: Invocation) -> Sequence[NotifyTarget]:
    """The targets of the fleet file; none when it cannot be used: what is on record is shown all the same."""
    try:
        return tuple(with_bots(load_fleet_with_notices(invocation)).values())
    except ConfigError:
        return ()


def target_table(views: Sequence[TargetView], screen: Screen, now: datetime) -> str:
    """One line per target."""
    rows = [
        (
            view.id,
            "failing" if view.is_failing else "ok" if view.state is not None else "new",
            str(view.waiting),
            relative(view.state.last_sent_at, now)
            if view.state is not None and view.state.last_sent_at is not None
            else "-",
            one_line(_about(view)),
        )
        for view in views
    ]
    return table(TARGETS, rows, width=screen.width, style=screen.out)


def _about(view: TargetView) -> str:
    if view.is_failing and view.state is not None:
        return view.state.last_error or "-"
    if view.device is not None:
        topics = ", ".join(view.device.topics)
        return f"{neutralise(view.device.label)} of {view.device.person}: {topics}"
    if view.declared is None:
        return "not in the fleet file"
    return ", ".join(sorted(one.value for one in view.declared.events)) or "hooks only"


def notification_table(found: Sequence[Notification], screen: Screen, now: datetime) -> str:
    """One line per notification."""
    rows = [
        (
            one.id,
            one.target,
            one.event.value,
            one.status.value,
            relative(one.created_at, now),
            one_line(
                f"{one.subject} ({one.last_error})" if one.last_error is not None else one.subject
            ),
        )
        for one in found
    ]
    return table(HEADING, rows, width=screen.width, style=screen.out)
