"""Recorder: every event into the journal before anybody sees it, numbered, masked and tallied."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from anyio import CancelScope

from nightherd.engine.contexts import Stores
from nightherd.errors import FencedError, JournalError, NightherdError
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import ErrorEvent, Event, is_message
from nightherd.model.limits.spending import CountUsage
from nightherd.model.secrets import Secrets
from nightherd.model.usage import Totals
from nightherd.ports import Journal

if TYPE_CHECKING:
    from nightherd.engine.jobs.oversight import Stopper
    from nightherd.ports import Clock


Sync = Callable[[Journal], Awaitable[None]]
"""Brings a journal to the disk without holding anybody up."""
OnEvent = Callable[[Event], None]
"""Called with every event, after it is durable."""


class Recorder:
    """Records one execution's events; `tally` is the totals of the job's whole record."""

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
        """The last failure recorded, until it is handled."""
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
        """Append `event`, then pass it on; return it as written. `FencedError` once the job is not ours any more.

        The journal's own fence works only once another owner has written; a lost lease is known before.
        """
        if self._journal is None:
            raise JournalError("the journal is closed")
        if not self.is_ours():
            raise FencedError("the worker lost its lease; another worker continues the job")
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
        # The journal stays open until that is done, also when the job is cancelled.
        with CancelScope(shield=True):
            await sync(self._journal)

    def _numbered(self, event: Event) -> Event:
        """`event` with the number of the message it belongs to: one more than those that have ended."""
        if isinstance(event, ErrorEvent) or not is_message(event):
            return event
        return msgspec.structs.replace(event, message=self.tally.messages + 1)


FIRST_S, SHORTEST_S, LONGEST_S = 1.0, 2.0, 30.0
"""Seconds to the first write, and the least and most between two writes."""
SHARE = 20
"""A job that has run for so many seconds is written again after one."""


class Progress:
    """Says when the row of one running job is to be written, and with what.

    `is_countable` is False while another component counts the job's usage together with what it has set aside.
    """

    def __init__(
        self, job: Job, recorder: Recorder, clock: Clock, is_countable: Callable[[], bool]
    ) -> None:
        self._job = job
        self._recorder = recorder
        self._clock = clock
        self._is_countable = is_countable
        self._begun = clock.monotonic()
        self._due = self._begun + FIRST_S
        self._written = self._written_before = (job.turns, job.messages, job.cost_microusd)

    def __call__(self) -> CountUsage | None:
        """The change to apply now; None when nothing is due or nothing is new."""
        monotonic = self._clock.monotonic()
        if monotonic < self._due or not self._is_countable():
            return None
        total: Totals = self._recorder.tally.totals
        known = (total.turns, total.messages, total.usage.cost_microusd)
        if known == self._written or total.turns < self._job.turns:
            return None  # nothing is new, or the record of earlier executions is not read yet
        self._written_before, self._written = self._written, known
        self._due = monotonic + min(max((monotonic - self._begun) / SHARE, SHORTEST_S), LONGEST_S)
        return CountUsage(
            job_id=self._job.id,
            epoch=self._job.epoch,
            at=self._clock.now(),
            total=total,
            last_seq=self._recorder.last_seq,
        )

    def undo(self) -> None:
        """Note that the last change could not be applied: the same is written later, also when nothing is new."""
        self._written = self._written_before


async def save_progress(running: Iterable[Stopper], context: Stores) -> None:
    """Write what the running jobs have used, in one transaction. Nothing that goes wrong here ends a job."""
    kept = [stopper.progress for stopper in running if stopper.progress is not None]
    due = [(progress, change) for progress in kept if (change := progress()) is not None]
    if not due:
        return
    try:
        # Refused: the job ended, or is another worker's.
        await context.state.apply([change for _, change in due])
    except NightherdError:  # a full disk, say
        for progress, _ in due:
            progress.undo()
