"""Denials: every call that was not allowed, once, however Claude says so.

It says so when it happens, in the result of the call when the tool is not there at all, and once more at the
end of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nightherd.model.event import Event, SystemEvent, describe, payload_of
from nightherd.model.system import Denied

DISABLED = re.compile(r"No such tool available: (?P<tool>[\w-]+)\. .*\bdisabled\b")
AT_THE_END = "it was not allowed"


class Denials:
    """Those of one run."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def notice(self, event: SystemEvent) -> None:
        """What was just told is not told again."""
        match payload_of(event):
            case Denied(tool_use_id=str(call)):
                self._told.add(call)
            case _:
                pass

    def in_tool_result(self, call: str | None, reason: str | None) -> Iterator[Event]:
        """The denial that a failed call comes to, when its tool does not exist for the agent."""
        found = DISABLED.search(reason or "")
        if found is not None:
            text = f"{found['tool']} is not among the tools of this agent"
            yield from self._tell(found["tool"], text, call)

    def in_result(self, result: Mapping[str, Any]) -> Iterator[Event]:
        """What the run's result lists and nobody has told yet."""
        listed = result.get("permission_denials")
        for one in listed if isinstance(listed, list) else ():
            match one:
                case {"tool_name": str(tool)}:
                    call = one.get("tool_use_id")
                    yield from self._tell(tool, AT_THE_END, call if isinstance(call, str) else None)
                case _:
                    pass

    def _tell(self, tool: str, reason: str, call: str | None) -> Iterator[Event]:
        if call is None or call not in self._told:
            self._told.add(call or "")
            yield describe(Denied(tool_name=tool, reason=reason, tool_use_id=call), reason)
