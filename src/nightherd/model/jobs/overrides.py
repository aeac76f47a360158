"""Overrides: an agent with the options of one of its jobs, and changes of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.model.agents.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.jobs.options import JobOptions
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.limits import LimitName, amount_of


def overridden(agent: Agent, options: JobOptions) -> Agent:
    """The agent as this job has it."""
    changes: dict[str, Any] = {
        name: value
        for name in ("model", "max_turns", "required_caps", "job_timeout")
        if (value := getattr(options, name)) is not None
    }
    limits = options.limits or {}
    if "turns" in limits and (agent.max_turns is not None or options.max_turns is not None):
        changes["max_turns"] = limits["turns"]  # another spelling of the same
    return replace(agent, **changes) if changes else agent


class AmendJob(msgspec.Struct, frozen=True, kw_only=True):
    """New maxima for a job that waits for a worker or runs, beside those it has been given.

    Refused for one that is suspended, which has to be resumed, and for one that has ended.
    """

    job_id: JobId
    limits: Mapping[str, int] = msgspec.field(default_factory=dict)
    """As a job keeps them: whole numbers, a duration in milliseconds."""
    prompt: str | None = None
    """The new prompt of a resumed job; refused while it runs."""
    key: str | None = None
    """The dedupe key of the request."""


def is_raised(why: Suspension, options: JobOptions) -> bool:
    """Whether the job that is to wait at a limit of its own has been given more of it meanwhile."""
    name = next((limit for limit in LimitName if limit.code == why.code), None)
    if why.reason is not SuspendReason.LIMIT or name is None:
        return False
    maximum = (options.limits or {}).get(name.value)
    if maximum is None or why.current_max is None:
        return False
    return maximum > amount_of(name, why.current_max)


INPUT_NAMES = ("issue_number", "issue")
PAYLOAD_NAMES = ("issue", "pull_request")
ISSUE_REPO = "issue_repo"
REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
LARGEST = 2**53
NUMBER = re.compile(r"#?([0-9]{1,15})", re.ASCII)


def issue_of_inputs(inputs: Mapping[str, Any]) -> int | None:
    """Return the number in the input `issue_number` or `issue`; None when neither is a number."""
    numbers = (_number(inputs.get(name)) for name in INPUT_NAMES)
    return next((number for number in numbers if number is not None), None)


def repo_of_inputs(inputs: Mapping[str, Any]) -> str | None:
    """Return the repository of the issue that the job is about, as a work source says it; None for no such text."""
    repo = inputs.get(ISSUE_REPO)
    return repo if isinstance(repo, str) and REPOSITORY.fullmatch(repo) else None


def issue_of_payload(payload: Any) -> int | None:
    """Return the number of the issue or pull request that a webhook's payload is about."""
    if not isinstance(payload, Mapping):
        return None
    subjects = (payload.get(name) for name in PAYLOAD_NAMES)
    numbers = (
        _number(subject.get("number")) for subject in subjects if isinstance(subject, Mapping)
    )
    return next((number for number in numbers if number is not None), None)


def _number(value: Any) -> int | None:
    if isinstance(value, str):
        match = NUMBER.fullmatch(value)
        value = int(match[1]) if match is not None else None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value <= LARGEST else None
