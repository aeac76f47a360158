"""Raising limits: a new maximum that has been used up already would let a job do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.engine.limits import KEPT
from nightherd.engine.workshop import Workshop
from nightherd.errors import RefusedError
from nightherd.model.job import Job
from nightherd.model.limits import COUNTED, LimitName, Used, shown
from nightherd.model.spending import used_of


def check_raised(job: Job, overrides: Mapping[str, Any], workshop: Workshop) -> None:
    """`RefusedError` when the job would have a new maximum that it has used up, its children included."""
    given = overrides.get(KEPT)
    if not isinstance(given, Mapping):
        return
    reader = workshop.reader
    texts = reader.find_texts(job.id)
    kept = texts.overrides.get(KEPT) if texts is not None else None
    before: Mapping[str, Any] = kept if isinstance(kept, Mapping) else {}
    ran = sum(one.duration_ms or 0 for one in reader.list_executions(job.id))
    used = used_of(job) + reader.used_below(job.id) + Used(duration=ran)
    for name in (*COUNTED, LimitName.DURATION):
        maximum = given.get(name.value)
        if maximum is None or maximum == before.get(name.value):
            continue
        if used.amount(name) >= int(maximum):
            raise RefusedError(
                f"{name.value}: job {job.id} has used {shown(name, used.amount(name))} already;"
                f" {shown(name, int(maximum))} would be its new maximum, not what is added",
                hint=f"nightherd jobs show {job.id}",
            )
