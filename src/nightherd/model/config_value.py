"""ConfigValue: one resolved setting of the fleet's files, and where it was written."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from nightherd.model.problem import Place


class Layer(StrEnum):
    """Where a value comes from; a later one replaces an earlier one. Those after `fleet` are of single jobs."""

    BUILT_IN = "built_in"
    """No file says it."""
    DEFAULTS = "defaults"
    """What a fleet file says for all its agents."""
    AGENT = "agent"
    """The agent's own entry or file."""
    OVERRIDES = "overrides"
    """What stands beside the path of the agent's file."""
    FLEET = "fleet"
    """What the fleet file says about the fleet itself."""
    HELD = "held"
    """What was accepted before: the files say something else, which waits for a person."""
    SCHEDULE = "schedule"
    """What the schedule of a job says."""
    RUN = "run"
    """What the workflow run of a job says, or keeps from its beginning."""
    REQUEST = "request"
    """What was given with the job, on the command line or by a program."""


class ConfigValue(msgspec.Struct, frozen=True, kw_only=True):
    """One resolved setting."""

    key: str
    """Its path in the agent or the fleet: `schedules.nightly.cron`, `allowed_tools[0]`."""
    value: Any
    """A plain value; what came out of the environment is its variable."""
    place: Place | None = None
    """None for a value that no file says."""
    layer: Layer = Layer.BUILT_IN
