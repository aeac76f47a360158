"""Raising limits: a new maximum that has been used up already would let a job do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.engine.limits import KEPT
from nightherd.errors import RefusedError
from nightherd.model.job import Job
from nightherd.model.limits import COUNTED, LimitName, Used, shown
from nightherd.model.spending import used_of
from nightherd.ports import StateReader


def check_raised(job: Job, overrides: Mapping[str, Any], reader: StateReader) -> None:
    """`RefusedError` when the job would have a new maximum that it has used up, its children included."""
    given = overrides.get(KEPT)
    if not isinstance(given, Mapping):
        return
    before = given_before(job, reader)
    new = {name: most for name, most in given.items() if most != before.get(name)}
    used = used_in_all(job, reader)
    name = used_up(new, used, job.error_code)
    if name is not None:
        amount, maximum = shown(name, used.amount(name)), shown(name, int(new[name.value]))
        raise RefusedError(
            f"{name.value}: job {job.id} has used {amount} already;"
            f" {maximum} would be its new maximum, not what is added",
            hint=f"nightherd jobs show {job.id}",
        )


def used_up(maxima: Mapping[str, Any], used: Used, code: str | None) -> LimitName | None:
    """The first of `maxima` that leaves nothing to go on with, for a job that waits with that code.

    A job may do without further children, unless it waits for one.
    """
    wanted: tuple[LimitName, ...] = (LimitName.SPAWNS,) if code == LimitName.SPAWNS.code else ()
    for name in (*COUNTED, LimitName.DURATION, *wanted):
        maximum = maxima.get(name.value)
        if maximum is not None and used.amount(name) >= int(maximum):
            return name
    return None


def used_in_all(job: Job, reader: StateReader) -> Used:
    """What the job has used with those below it, and how long it has run."""
    ran = sum(one.duration_ms or 0 for one in reader.list_executions(job.id))
    return used_of(job) + reader.used_below(job.id) + Used(duration=ran)


def given_before(job: Job, reader: StateReader) -> Mapping[str, Any]:
    """The limits that the job itself was given."""
    texts = reader.find_texts(job.id)
    kept = texts.overrides.get(KEPT) if texts is not None else None
    return kept if isinstance(kept, Mapping) else {}
