"""Recorder: every event into the journal before anybody sees it, numbered, masked and tallied."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import msgspec
from anyio import CancelScope

from nightherd.errors import FencedError, JournalError
from nightherd.model.event import ErrorEvent, Event, is_message
from nightherd.model.outcome import Tally
from nightherd.model.secret import Secrets
from nightherd.ports import Journal

Sync = Callable[[Journal], Awaitable[None]]
"""Brings a journal to the disk without holding anybody up."""
OnEvent = Callable[[Event], None]
"""Told of every event, after it is durable."""


class Recorder:
    """Records one execution's events; `tally` is what the job's whole record comes to."""

    def __init__(
        self,
        secrets: Secrets,
        on_event: OnEvent,
        *,
        is_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        self.tally = Tally()
        self.last_seq = 0
        self.last_error: ErrorEvent | None = None
        """The last failure recorded, until somebody has dealt with it."""
        self._secrets = secrets
        self._on_event = on_event
        self.is_ours = is_ours
        """Whether the job is still this worker's, as far as its lease says."""
        self._journal: Journal | None = None

    @contextmanager
    def into(self, journal: Journal) -> Iterator[None]:
        """Record into `journal` from here to the end of the block, which closes it."""
        self._journal, self.last_seq = journal, journal.last_seq
        try:
            yield
        finally:
            self._journal = None
            journal.close()

    def record(self, event: Event) -> Event:
        """Append `event`, then tell; returns it as written. `FencedError` once the job is not ours any more.

        The journal's own fence works only once another owner has written; a lost lease is known before.
        """
        if self._journal is None:
            raise JournalError("the journal is closed")
        if not self.is_ours():
            raise FencedError("the worker's lease is lost; the job is for others to go on with")
        masked = self._secrets.mask_event(event)
        written = self._journal.append(self._numbered(masked))
        self.last_seq = written.seq
        self.tally = self.tally.add(written)
        if isinstance(written, ErrorEvent):
            self.last_error = written
        self._on_event(written)
        return written

    async def sync(self, sync: Sync) -> None:
        """Everything recorded so far survives a power cut from here on, as far as the fleet wants that."""
        if self._journal is None:
            raise JournalError("the journal is closed")
        # The journal stays open until that is done, whoever wants the job to end.
        with CancelScope(shield=True):
            await sync(self._journal)

    def _numbered(self, event: Event) -> Event:
        """`event` with the number of the message it belongs to: one more than those that have ended."""
        if isinstance(event, ErrorEvent) or not is_message(event):
            return event
        return msgspec.structs.replace(event, message=self.tally.messages + 1)
