"""Why a job of Claude's is run once more, read from what its journal says since the model last answered."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from nightherd.model.jobs.outcome import EXIT_OF_CODE
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolUseEvent,
    is_by_hand,
)
from nightherd.model.journal.system import SystemSubtype

PROCESS_ENDED = frozenset({"killed", "stalled", "no_result", "interrupted", "runtime_error"})
"""Errors of a run whose process ended before it had said how the run came out."""
NEXT_RUN = frozenset(
    {
        SystemSubtype.RESUMED,
        SystemSubtype.SUSPENDED,
        SystemSubtype.END,
    }
)
"""Lines that follow the end of a run, whether that said so or not."""


class Why(StrEnum):
    """What has happened since the model last answered; the first of these that did."""

    INTERRUPTED = "interrupted"
    """The process ended while it was at work."""
    FAILED = "failed"
    """Requests to the model failed; Claude ended the run itself, and nothing was cut off."""
    PAUSED = "paused"
    """Neither: the job waited, for a limit to be raised or for a person."""


def why_continued(events: Iterable[Event]) -> Why:
    """Return why the job whose events these are is continued."""
    known = _SinceAnswer()
    for event in events:
        known.add(event)
    if known.is_interrupted or known.is_running:
        return Why.INTERRUPTED
    return Why.FAILED if known.has_failed else Why.PAUSED


class _SinceAnswer:
    """What happened since the model last answered: by then it knows everything it was told before."""

    def __init__(self) -> None:
        self.is_running = False
        self.is_interrupted = False
        self.has_failed = False
        self._was_interrupted = False
        """When the current execution began."""

    def add(self, event: Event) -> None:
        match event:
            case ErrorEvent(code=code):
                self._end(code or "")
            case SystemEvent(subtype=SystemSubtype.INIT):
                self.is_running = True
            case SystemEvent(subtype=SystemSubtype.COMPLETE):
                self.is_running = False
            case SystemEvent(subtype=SystemSubtype.EXECUTION_STARTED):
                self._end_unheard()
                self._was_interrupted = self.is_interrupted
            case SystemEvent(subtype=SystemSubtype.RECOVERED):
                # Answers of the lost execution that were recovered stand before this line.
                self.is_interrupted |= self._was_interrupted
            case SystemEvent(subtype=subtype) if subtype in NEXT_RUN:
                self._end_unheard()
            case (
                AssistantEvent(uuid=str(), parent_tool_use_id=None)
                | ToolUseEvent(parent_tool_use_id=None)
            ) if not is_by_hand(event):
                self.is_interrupted = self.has_failed = False
            case _:
                pass

    def _end_unheard(self) -> None:
        self.is_interrupted |= self.is_running
        self.is_running = False

    def _end(self, code: str) -> None:
        self.is_interrupted |= code in PROCESS_ENDED and self.is_running
        # The limits that a job runs into are no failure of a request, and neither is a claude that did not start.
        is_request = code not in PROCESS_ENDED and code not in EXIT_OF_CODE
        self.has_failed |= is_request and self.is_running
        self.is_running = False
