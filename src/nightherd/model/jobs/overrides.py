"""Overrides: what one job has other than its agent. Kept with the job, so that every execution of it has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.agents.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.limits import LimitName, amount_of
from nightherd.model.units import format_duration, parse_duration

FOLLOW_UP = "follow_up"
"""What a resumed job is told besides, and after which epoch it was said."""


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What replaces the agent's own; None leaves it."""

    model: str | None = None
    max_turns: int | None = None
    job_timeout: timedelta | None = None

    def document(self) -> dict[str, Any]:
        """As they are kept: only what is set."""
        values: dict[str, Any] = {"model": self.model, "max_turns": self.max_turns}
        if self.job_timeout is not None:
            values["job_timeout"] = format_duration(self.job_timeout)
        return {name: value for name, value in values.items() if value is not None}


def overridden(agent: Agent, kept: Mapping[str, Any]) -> Agent:
    """The agent as this job has it."""
    if kept.get("model") is not None:
        agent = replace(agent, model=str(kept["model"]))
    if kept.get("max_turns") is not None:
        agent = replace(agent, max_turns=int(kept["max_turns"]))
    limits = kept.get("limits")
    if agent.max_turns is not None and isinstance(limits, Mapping) and "turns" in limits:
        agent = replace(agent, max_turns=int(limits["turns"]))  # another spelling of the same
    if kept.get("required_caps") is not None:
        agent = replace(agent, required_caps=tuple(map(str, kept["required_caps"])))
    if kept.get("job_timeout") is not None:
        agent = replace(agent, job_timeout=parse_duration(str(kept["job_timeout"])))
    return agent


def for_another_try(kept: Mapping[str, Any]) -> dict[str, Any]:
    """What a job has other than its agent, for a new job with the same work: all but what only that one was told."""
    names = ("model", "max_turns", "job_timeout", "limits", "required_caps")
    return {name: kept[name] for name in names if name in kept}


class FollowUp(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is told when it is resumed."""

    text: str
    after_epoch: int


def follow_up_of(kept: Mapping[str, Any]) -> FollowUp | None:
    """What the job was last told besides its prompt."""
    found = kept.get(FOLLOW_UP)
    if not isinstance(found, Mapping):
        return None
    return FollowUp(text=str(found["text"]), after_epoch=int(found["after_epoch"]))


KEPT = "limits"
"""Where a job's own limits are kept among what it has other than its agent."""


class AmendJob(msgspec.Struct, frozen=True, kw_only=True):
    """New maxima for a job that waits for a worker or runs, beside those it has been given.

    Refused for one that is suspended, which has to be resumed, and for one that has ended.
    """

    job_id: JobId
    limits: Mapping[str, int] = msgspec.field(default_factory=dict)
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


INPUT_NAMES = ("issue_number", "issue")
PAYLOAD_NAMES = ("issue", "pull_request")
LARGEST = 2**53
NUMBER = re.compile(r"#?([0-9]{1,15})", re.ASCII)


def issue_of_inputs(inputs: Mapping[str, Any]) -> int | None:
    """Return the number in the input `issue_number` or `issue`; None when neither is a number."""
    numbers = (_number(inputs.get(name)) for name in INPUT_NAMES)
    return next((number for number in numbers if number is not None), None)


def issue_of_payload(payload: Any) -> int | None:
    """Return the number of the issue or pull request that a webhook's payload is about."""
    if not isinstance(payload, Mapping):
        return None
    subjects = (payload.get(name) for name in PAYLOAD_NAMES)
    numbers = (_number(one.get("number")) for one in subjects if isinstance(one, Mapping))
    return next((number for number in numbers if number is not None), None)


def _number(value: Any) -> int | None:
    if isinstance(value, str):
        match = NUMBER.fullmatch(value)
        value = int(match[1]) if match is not None else None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value <= LARGEST else None
