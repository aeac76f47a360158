"""Where trials of approvals are killed, and who is."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Victim(StrEnum):
    """Who is killed."""

    CLAUDE = "claude"
    WORKER = "worker"
    BOTH = "both"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One place, in one of two executions."""

    place: str
    """`asked`: before anybody is asked or has answered. `decided`: that is on record, and Claude does not know it.
    `answered`: so long after it does. `settling`: before the rows say that the job waits. `tool`: in the call itself."""
    victim: Victim
    is_resumed: bool = False
    """Whether it is reached after the approval."""
    after_s: float = 0.0
