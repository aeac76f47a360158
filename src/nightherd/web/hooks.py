"""`/v1/hooks/NAME`: messages from outside, signed by their sender, become jobs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import msgspec
from fastapi import APIRouter, Request, Response

from nightherd.engine.operations.deliver import Deliver, Delivered, deliver
from nightherd.errors import (
    ForbiddenError,
    InvalidValueError,
    NightherdError,
    NotFoundError,
    UsageError,
)
from nightherd.model.access.role import Role
from nightherd.model.log import LogLevel, LogLine
from nightherd.model.webhooks import Endpoint, SignatureKind, is_github, is_standard
from nightherd.views.fleet.deliveries import AcceptedDelivery, DeliveryRow, delivery_row
from nightherd.web.access.caller import needs, public
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document

PREFIX = "/v1/hooks"
LONGEST_ID = 200
WRONG = "the signature is not right"
FORM = "application/x-www-form-urlencoded"

router = APIRouter(prefix=PREFIX, tags=["webhooks"])


@router.post("/{name}", status_code=202, responses=answers("delivery", AcceptedDelivery, 404, 409, 413, status=202))  # fmt: skip
@public
async def take_in(site: OnSite, request: Request, name: str) -> Response:
    """A message for the endpoint `name` of the fleet file; answered once it, and its job, cannot be lost.

    Signed as GitHub does (`X-Hub-Signature-256`, `X-GitHub-Delivery`) or as Standard Webhooks has it. Sent
    again under the same delivery id, it makes no second job.
    """
    endpoint = site.fleet().webhooks.endpoints.get(name)
    if endpoint is None:
        raise NotFoundError(f"there is no webhook {name!r}")
    body = await request.body()
    now = site.context.clock.now()
    try:
        delivery_id = _check(endpoint, request, body, site, now)
        delivery = Deliver(
            endpoint=endpoint,
            delivery_id=delivery_id,
            body=body,
            payload=_payload(request, body),
            event=request.headers.get("x-github-event"),
        )
        delivered = await deliver(delivery, site.context)
    except Exception as error:
        site.counters.deliveries[name, "refused"] += 1
        _log_refused(endpoint, request, error, site, now)
        raise
    site.wake()
    site.counters.deliveries[name, _word(delivered)] += 1
    job = delivered.job
    data: AcceptedDelivery = {
        "job_id": job.id if job is not None else None,
        "run_ids": list(delivered.runs),
        "is_new": delivered.is_new,
        "reason": delivered.reason,
    }
    return document("delivery", data, now, status=202)


@router.get("/{name}/deliveries", responses=answers("deliveries", list[DeliveryRow], 404))  # fmt: skip
@needs(Role.VIEWER)
async def list_deliveries(site: OnSite, name: str) -> Response:
    """The newest messages that an endpoint took in, and what became of each."""
    if name not in site.fleet().webhooks.endpoints:
        raise NotFoundError(f"there is no webhook {name!r}")
    found = await site.ask(lambda reader: reader.list_deliveries(name, 100))
    return document("deliveries", [delivery_row(row) for row in found], site.context.clock.now())


def _log_refused(
    endpoint: Endpoint, request: Request, error: Exception, site: ApiContext, now: datetime
) -> None:
    """Write a delivery that was not taken in to the operator's log: its sender may not report it."""
    message = error.message if isinstance(error, NightherdError) else type(error).__name__
    data = {
        "webhook": endpoint.name,
        "delivery": (
            request.headers.get("x-github-delivery") or request.headers.get("webhook-id") or ""
        )[:LONGEST_ID],
        "from": request.client.host if request.client is not None else None,
    }
    site.context.log.write(
        LogLine(
            at=now,
            level=LogLevel.WARNING,
            event="delivery.refused",
            agent=endpoint.agent,
            message=f"webhook {endpoint.name}: {message}",
            data={key: value for key, value in data.items() if value},
        )
    )


def warn_without_secret(site: ApiContext) -> None:
    """Warn the operator of endpoints that accept no delivery."""
    for endpoint in site.fleet().webhooks.endpoints.values():
        if not site.secrets_of(endpoint.secret_env):
            site.report(_without_secret(endpoint))


def _without_secret(endpoint: Endpoint) -> str:
    variable = endpoint.secret_env
    why = "no secret_env is named" if variable is None else f"the variable {variable} is not set"
    return f"webhook {endpoint.name} accepts no deliveries: {why}"


def _word(delivered: Delivered) -> str:
    if not delivered.is_new:
        return "duplicate"
    if delivered.job is not None:
        return "job"
    return "run" if delivered.runs else "ignored"


def _check(
    endpoint: Endpoint, request: Request, body: bytes, site: ApiContext, now: datetime
) -> str:
    """The delivery's id, its signature checked."""
    secrets = site.secrets_of(endpoint.secret_env)
    if not secrets:
        # Not what is missing: that is for the operator, who finds it in the log.
        site.report(_without_secret(endpoint))
        raise ForbiddenError(f"webhook {endpoint.name} accepts no deliveries")
    if endpoint.signature is SignatureKind.GITHUB:
        if not is_github(secrets, _header(request, "x-hub-signature-256"), body):
            raise ForbiddenError(WRONG)
        return _header(request, "x-github-delivery")
    delivery_id = _header(request, "webhook-id")
    sent = _instant(_header(request, "webhook-timestamp"))
    if not is_standard(secrets, _header(request, "webhook-signature"), delivery_id, sent, body):
        raise ForbiddenError(WRONG)
    window = site.fleet().webhooks.replay_window
    if abs(now.timestamp() - sent) > window / timedelta(seconds=1):
        raise ForbiddenError("the message was signed at another time; it may be a replay")
    return delivery_id


def _header(request: Request, name: str) -> str:
    value = request.headers.get(name, "")
    if not value or len(value) > LONGEST_ID * 10:
        raise ForbiddenError(f"the header {name} is missing, or too long")
    if name in ("x-github-delivery", "webhook-id") and (
        len(value) > LONGEST_ID or not value.isascii() or not value.isprintable()
    ):
        raise UsageError(f"the header {name} is not a delivery id")
    return value


def _instant(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise ForbiddenError("the header webhook-timestamp is not a time")
    return int(text)


def _payload(request: Request, body: bytes) -> Any:
    """What the message says: JSON, or JSON in the field `payload` of a form."""
    if request.headers.get("content-type", "").startswith(FORM):
        try:
            fields = parse_qs(body.decode(), max_num_fields=10)
        except ValueError as error:
            raise InvalidValueError("the body is not a form") from error
        body = fields.get("payload", [""])[0].encode()
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidValueError("the body is not JSON") from error
