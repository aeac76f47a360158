"""Spawn: a job has another agent do a part of its work, and waits for it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nightherd.model.agents.agent import Agent
from nightherd.model.ids import JobId
from nightherd.model.permissions.tool_rule import SPAWN, SPAWN_TOOL, covers

TOOL = SPAWN_TOOL
"""What agents call it."""


class SpawnCall(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of whom; the same call has the same id, however often it is made."""

    call_id: str
    agent: str
    prompt: str


class SpawnResult(msgspec.Struct, frozen=True, kw_only=True):
    """What it came to: the child's answer, or why there is none."""

    success: bool
    answer: str | None = None
    error: str | None = None
    job_id: JobId | None = None


def may_spawn(agent: Agent) -> bool:
    """Return whether the agent may start child jobs: the fleet file has to allow it."""
    named = (*(agent.tools or ()), *agent.allowed_tools)
    return TOOL in named or any(one.startswith(SPAWN) for one in agent.required_caps or ())


def spawn_key(parent: JobId, call_id: str) -> str:
    """What makes a call have one child, over any number of executions."""
    return f"spawn:{parent}:{call_id}"


def narrowed(above: Iterable[str] | None, own: Iterable[str] | None) -> tuple[str, ...] | None:
    """What a child is held to: never more than the job that made it. None is held to nothing."""
    if above is None:
        return None if own is None else tuple(own)
    above = tuple(above)
    if own is None:
        return above
    own = tuple(own)
    inner = [one for one in own if covers(above, one)]
    outer = [one for one in above if covers(own, one)]
    return tuple(dict.fromkeys([*inner, *outer]))
