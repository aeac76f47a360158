"""Raising: a job that waits for a worker, or runs, may use more from now on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nightherd.model.ids import JobId
from nightherd.model.job import SuspendReason
from nightherd.model.limits import LimitName, amount_of
from nightherd.model.suspension import Suspension

KEPT = "limits"
"""Where a job's own limits are kept among what it has other than its agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendJob:
    """New maxima for a job that waits for a worker or runs, beside those it has been given.

    Refused for one that is suspended, which has to be resumed, and for one that has ended.
    """

    job_id: JobId
    limits: Mapping[str, int] = field(default_factory=dict)
    """As a job keeps them: whole numbers, a duration in milliseconds."""
    prompt: str | None = None
    """What it is told besides, when it goes on; refused while it runs."""


def is_raised(why: Suspension, overrides: Mapping[str, Any]) -> bool:
    """Whether the job that is to wait at a limit of its own has been given more of it meanwhile."""
    kept = overrides.get(KEPT)
    name = next((one for one in LimitName if one.code == why.code), None)
    if why.reason is not SuspendReason.LIMIT or name is None or not isinstance(kept, Mapping):
        return False
    maximum = kept.get(name.value)
    if maximum is None or why.current_max is None:
        return False
    return int(maximum) > amount_of(name, why.current_max)
