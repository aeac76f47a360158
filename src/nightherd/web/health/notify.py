"""`/v1/notify`: the targets of notifications, what was sent to them, and a test message."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from nightherd.engine.operations.notifications import retry_target, send_test_message
from nightherd.model.access.role import Role
from nightherd.model.notifications.notification import NotificationQuery, NotificationStatus
from nightherd.model.notifications.routing import with_bots
from nightherd.ports import StateReader
from nightherd.views.people.notifications import (
    NotificationsDocument,
    NotifyTestDocument,
    list_notifications,
    list_targets,
    notifications_document,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import NEXT, answers, document
from nightherd.web.jobs.jobs import LARGEST, MOST
from nightherd.web.requests import Nothing
from nightherd.wiring.notifications import open_sender, why_not_sent

router = APIRouter(prefix="/v1/notify", tags=["fleet"])


@router.get("", responses=answers("notifications", NotificationsDocument, beside=NEXT))
@needs(Role.VIEWER)
async def list_all(
    site: OnSite,
    target: Annotated[str | None, Query(max_length=500)] = None,
    status: NotificationStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 20,
    before: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
) -> Response:
    """The targets and how they do, without their addresses; and the newest notifications, and why they failed."""
    now = site.context.clock.now()
    declared = with_bots(site.fleet()).values()
    query = NotificationQuery(target=target, status=status, before=before, limit=limit)

    def look(reader: StateReader) -> tuple[NotificationsDocument, int | None]:
        views = list_targets(reader, declared, now)
        page = list_notifications(reader, query)
        chosen = [view for view in views if target in (None, view.id)]
        return notifications_document(chosen, page), page.next_before

    data, next_before = await site.ask(look)
    return document("notifications", data, now, next_before=next_before)


@router.post("/{target}/test", responses=answers("notify_test", NotifyTestDocument, 404, 409))
@needs(Role.ADMIN)
async def send_test(site: OnSite, target: str, body: Nothing | None = None) -> Response:
    """Send a test message; 409 says why the target did not take it. If it was failing, what waits for it is sent now."""
    context = site.context
    sender = open_sender(site.environ)
    environment, secrets = context.environment, context.secrets
    await send_test_message(target, site.fleet(), sender, environment, secrets, why_not_sent())
    await retry_target(target, context.state, context.clock)
    data: NotifyTestDocument = {"target": target, "sent": True}
    return document("notify_test", data, context.clock.now())
