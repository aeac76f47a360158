"""Deliveries of webhooks as the API shows them."""

from __future__ import annotations

from typing import TypedDict

from nightherd.model.webhooks import Delivery, DeliveryOutcome
from nightherd.views.jobs.jobs import timestamp


class DeliveryRow(TypedDict):
    """A message that an endpoint took in, and what became of it."""

    delivery_id: str
    received_at: str
    event: str | None
    outcome: DeliveryOutcome
    job_id: str | None
    run_ids: list[str]
    reason: str | None
    size: int
    sha256: str


class AcceptedDelivery(TypedDict):
    """What became of a message; `is_new` is false for one that was sent before."""

    job_id: str | None
    run_ids: list[str]
    is_new: bool
    reason: str | None


def delivery_row(delivery: Delivery) -> DeliveryRow:
    """Return a delivery as plain data."""
    return {
        "delivery_id": delivery.delivery_id,
        "received_at": timestamp(delivery.received_at),
        "event": delivery.event,
        "outcome": delivery.outcome,
        "job_id": delivery.job_id,
        "run_ids": delivery.run_ids.split(),
        "reason": delivery.reason,
        "size": delivery.size,
        "sha256": delivery.sha256,
    }
