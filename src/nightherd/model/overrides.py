"""Overrides: what one job has other than its agent. Kept with the job, so that every execution of it has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from nightherd.model.agent import Agent
from nightherd.model.duration import format_duration, parse_duration

FOLLOW_UP = "follow_up"
"""What a resumed job is told besides, and after which epoch it was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """What a job is told when it is resumed."""

    text: str
    after_epoch: int


def follow_up_of(kept: Mapping[str, Any]) -> FollowUp | None:
    """What the job was last told besides its prompt."""
    found = kept.get(FOLLOW_UP)
    if not isinstance(found, Mapping):
        return None
    return FollowUp(text=str(found["text"]), after_epoch=int(found["after_epoch"]))
