"""Deliveries: what taking in a message from outside does."""

from __future__ import annotations

from dataclasses import replace

from nightherd.model.change import Answer, Applied, RecordDelivery, Refused, Why
from nightherd.model.decisions.rows import Rows
from nightherd.model.decisions.schedules import submit
from nightherd.model.delivery import Delivery, DeliveryOutcome
from nightherd.model.job import Job


def record(change: RecordDelivery, rows: Rows) -> Answer:
    """The delivery and its outcome in one: sent any number of times, it makes one job (INV-ONCE)."""
    delivery = change.delivery
    known = rows.get(Delivery, delivery.id)
    if known is not None:
        job = rows.get(Job, known.job_id) if known.job_id is not None else None
        found = f"delivery {delivery.id} was taken in already"
        return Refused(why=Why.DUPLICATE, message=found, job=job)
    if change.job is None:
        return Applied(rows=(replace(delivery, outcome=DeliveryOutcome.IGNORED, job_id=None),))
    submitted = submit(change.job, rows)
    if isinstance(submitted, Refused) or submitted.job is None:
        return submitted
    taken = replace(delivery, outcome=DeliveryOutcome.JOB, job_id=submitted.job.id, reason=None)
    return Applied(rows=(*submitted.rows, taken), job=submitted.job)
