"""Recorder: every event into the journal before anybody sees it, numbered, masked and tallied."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nightherd.model.event import ErrorEvent, Event, is_message
from nightherd.model.outcome import Tally
from nightherd.model.secret import Secrets
from nightherd.ports import Journal

OnEvent = Callable[[Event], None]
"""Told of every event, after it is durable."""


class Recorder:
    """Records one execution's events; `tally` is what the job's whole record comes to."""

    def __init__(self, journal: Journal, secrets: Secrets, on_event: OnEvent) -> None:
        self.journal = journal
        self.tally = Tally()
        self._secrets = secrets
        self._on_event = on_event

    def record(self, event: Event) -> Event:
        """Append `event`, then tell; returns it as written."""
        masked = self._secrets.mask_event(event)
        written = self.journal.append(self._numbered(masked))
        self.tally = self.tally.add(written)
        self._on_event(written)
        return written

    def _numbered(self, event: Event) -> Event:
        """`event` with the number of the message it belongs to: one more than those that have ended."""
        if isinstance(event, ErrorEvent) or not is_message(event):
            return event
        return msgspec.structs.replace(event, message=self.tally.messages + 1)
