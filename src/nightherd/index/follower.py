"""Follower: keeps the index up with the change feed and the journals, from a thread of its own.

It does nothing that a job waits for. It works in small steps and rests four times as long as it worked, so that a
long backlog takes at most a fifth of one processor, and never the interpreter for long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from nightherd.errors import NightherdError
from nightherd.index.indexer import Indexer
from nightherd.ports import Clock, Wait

INTERVAL_S = 2.0
"""Between two rounds: how far a search is behind at most, once everything older is indexed."""
RETRY_S = 30.0
"""Before the next round after one that failed."""
RESTS = 4.0
"""How much longer than a step the rest after it is, while there is more to do."""
SWEEP_S = 3_600.0
"""How often it is looked whether journals were deleted."""
DUE = 200
"""Jobs that are looked up at once."""
STOP_PATIENCE_S = 10.0


class IndexFollower:
    """Keeps the index of one state directory, in any number of processes at a time."""

    def __init__(
        self,
        indexer: Indexer,
        clock: Clock,
        report: Callable[[str], None],
        wait: Wait | None = None,
    ) -> None:
        self._indexer = indexer
        self._clock = clock
        self._report = report
        self._stop = threading.Event()
        self._wait = wait if wait is not None else self._stop.wait
        self._thread: threading.Thread | None = None
        self._swept: float | None = None
        self._problem = ""

    def start(self) -> None:
        """Follow from now on; once is enough, more are harmless."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._follow, name="index", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop after the step that is under way: what is not indexed yet is for the next start."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(STOP_PATIENCE_S)
            self._thread = None

    def _follow(self) -> None:
        pause = 0.0
        while not self._wait(pause) and not self._stop.is_set():
            try:
                self.round()
                pause, self._problem = INTERVAL_S, ""
            except Exception as error:  # noqa: BLE001 (an edge: the fleet continues without the index)
                said = error.message if isinstance(error, NightherdError) else repr(error)
                if said != self._problem:
                    self._report(f"index: {said}; trying again until it works")
                pause, self._problem = RETRY_S, said
            self._say_notices()
        self._indexer.close()

    def round(self) -> None:
        """Index everything that is known to be new, unless it is stopped on the way."""
        now = self._clock.monotonic()
        if self._swept is None or now - self._swept >= SWEEP_S:
            self._swept = now
            self._rested(self._indexer.sweep)
        while self._rested(self._indexer.follow_changes) and not self._stop.is_set():
            pass
        looked: set[str] = set()
        while not self._stop.is_set():
            due = self._indexer.due_jobs(len(looked) + DUE)
            fresh = [job_id for job_id in due if job_id not in looked]
            if not fresh:
                return
            for job_id in fresh:
                looked.add(job_id)
                while not self._stop.is_set() and self._rested(self._indexer.index_job, job_id):
                    pass

    def _rested(self, work: Callable[..., int], *arguments: object) -> int:
        """Carry out a step, and rest after it when there is more to do."""
        begun = self._clock.monotonic()
        answer = work(*arguments)
        if answer:
            self._wait(RESTS * (self._clock.monotonic() - begun))
        return answer

    def _say_notices(self) -> None:
        while self._indexer.notices:
            self._report(f"index: {self._indexer.notices.pop(0)}")
