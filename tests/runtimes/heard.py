"""What a run said, sorted: for tests of every runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, payload_of
from nightherd.model.journal.system import Denied, Warned


def payloads(events: Iterable[Event], kind: type[Any]) -> list[Any]:
    """What the system's lines of one kind say."""
    told = (payload_of(event) for event in events if isinstance(event, SystemEvent))
    return [one for one in told if isinstance(one, kind)]


def codes(events: Iterable[Event]) -> list[str]:
    """The code of every warning."""
    return [warned.code for warned in payloads(events, Warned)]


def denials(events: Iterable[Event]) -> list[Denied]:
    """Every call that was not allowed."""
    return payloads(events, Denied)


def failed_servers(events: Iterable[Event]) -> list[str]:
    """The MCP servers that could not be used, each as often as that was told."""
    return [one.raw["name"] for one in payloads(events, Warned) if one.code == "mcp_server_failed"]


def error_of(events: list[Event]) -> ErrorEvent:
    """The error that the run ended with."""
    last = events[-1]
    assert isinstance(last, ErrorEvent), last
    return last


def tally_of(events: Iterable[Event], start: Tally | None = None) -> Tally:
    """What the events come to, after those that `start` has counted."""
    total = start or Tally()
    for event in events:
        total = total.add(event)
    return total


def session_of(events: Iterable[Event]) -> str:
    """The runtime's own id of the session."""
    found = tally_of(events).runtime_session_id
    assert found is not None
    return found


class HeardText:
    """A `TextStream` that keeps what was streamed."""

    def __init__(self) -> None:
        self.begun = 0
        self.pieces: list[tuple[int, str]] = []

    @property
    def texts(self) -> list[str]:
        """Each block as far as it has come."""
        blocks: dict[int, str] = {}
        for block, text in self.pieces:
            blocks[block] = blocks.get(block, "") + text
        return list(blocks.values())

    def begin(self) -> None:
        self.begun += 1

    def add(self, block: int, text: str) -> None:
        self.pieces.append((block, text))
