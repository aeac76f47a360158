"""What a container engine says about itself that decides how containers are made."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

LIMITS = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processor time"}
"""Fields of `GET /info` that are false where the engine cannot limit something: it discards the limit, and starts."""


class Users(StrEnum):
    """Who a container's users are on this machine."""

    SAME = "same"
    """The users with the same numbers."""
    ROOTLESS = "rootless"
    """Root is the user whose engine it is; the others are numbers that belong to nobody else."""
    REMAPPED = "remapped"
    """All are numbers that belong to nobody else (`userns-remap`)."""


class EngineTraits(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is like."""

    users: Users = Users.SAME
    unlimited: tuple[str, ...] = ()
    """What it cannot limit."""


def traits_of(info: Mapping[str, Any]) -> EngineTraits:
    """Return the traits in the engine's answer to `GET /info`."""
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    users = Users.SAME
    if any("rootless" in option for option in options):
        users = Users.ROOTLESS
    elif any(option.startswith("name=userns") for option in options):
        users = Users.REMAPPED
    return EngineTraits(
        users=users,
        unlimited=tuple(what for field, what in LIMITS.items() if info.get(field) is False),
    )


def unlimited_text(unlimited: tuple[str, ...]) -> str:
    """What to say where an engine cannot limit something."""
    return f"this container engine does not limit {' and '.join(unlimited)}"


UNLIMITED_REMEDY = (
    "a rootless engine needs cgroup v2 with its controllers delegated; else use an engine of root"
)
