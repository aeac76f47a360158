"""Delivery: one message that came in by a webhook, and its one outcome."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from nightherd.model.ids import JobId


class DeliveryOutcome(StrEnum):
    """What became of a delivery."""

    JOB = "job"
    IGNORED = "ignored"
    """It was in order, and about something its endpoint does not act on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery's row: it is there once, with exactly one outcome. Its body is not kept."""

    id: str
    """`ENDPOINT/DELIVERY`."""
    endpoint: str
    delivery_id: str
    """What the sender calls it; sent again, it is called the same."""
    received_at: datetime
    outcome: DeliveryOutcome
    event: str | None = None
    """What it is about, where the sender says so."""
    size: int = 0
    sha256: str = ""
    """Of the body as it came."""
    job_id: JobId | None = None
    reason: str | None = None
    """Why it was ignored."""


def delivery_key(endpoint: str, delivery_id: str) -> str:
    """The key of an endpoint's delivery."""
    return f"{endpoint}/{delivery_id}"
