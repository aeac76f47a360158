"""Progress: what a running job has used so far, written to its row while it runs.

Lists, the API and the readable files show rows. Without this, a job without limits would show no turn and no
cost until it ends. A job is written soon after its first second, then less often the longer it runs, so that
a long job adds little to the ledger; what it used last is always written, also when nothing follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from nightherd.engine.recorder import Recorder
from nightherd.errors import NightherdError
from nightherd.model.job import Job
from nightherd.model.spending import CountUsage
from nightherd.model.usage import Totals

if TYPE_CHECKING:
    from nightherd.engine.stopper import Stopper
    from nightherd.engine.workshop import Workshop
    from nightherd.ports import Clock

FIRST_S, SHORTEST_S, LONGEST_S = 1.0, 2.0, 30.0
"""Seconds to the first write, and the least and most between two writes."""
SHARE = 20
"""A job that has run for so many seconds is written again after one."""


class Progress:
    """Says when the row of one running job is to be written, and with what.

    `is_countable` is False while somebody else counts the job's usage together with what it has set aside.
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


async def save_progress(running: Iterable[Stopper], workshop: Workshop) -> None:
    """Write what the running jobs have used, in one transaction. Nothing that goes wrong here ends a job."""
    kept = [stopper.progress for stopper in running if stopper.progress is not None]
    due = [(progress, change) for progress in kept if (change := progress()) is not None]
    if not due:
        return
    try:
        # Refused: the job ended, or is another worker's.
        await workshop.state.apply([change for _, change in due])
    except NightherdError:  # a full disk, say
        for progress, _ in due:
            progress.undo()
