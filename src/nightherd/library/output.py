"""What a job says, event by event, for programs."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from anyio import to_thread

from nightherd.model.event import Event, SystemEvent
from nightherd.model.ids import JobId
from nightherd.model.system import SystemSubtype
from nightherd.wiring import open_journals


async def read_job_output(
    state_dir: str | Path, job_id: str, *, after: int = 0, follow: bool = False
) -> AsyncIterator[Event]:
    """Every event of the job after number `after`, in order; with `follow`, also those to come, to its end.

    The job need not have begun. Leaving the iteration stops following.
    """
    journals, stopped = open_journals(Path(state_dir)), threading.Event()
    if follow:
        events = journals.follow(JobId(job_id), after=after, wait=stopped.wait, load_blobs=True)
    else:
        events = journals.read(JobId(job_id), after=after)
    try:
        while (
            event := await to_thread.run_sync(_next, events, abandon_on_cancel=True)
        ) is not None:
            yield event
            if follow and isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END:
                return
    finally:
        stopped.set()


def _next(events: Iterator[Event]) -> Event | None:
    return next(events, None)
