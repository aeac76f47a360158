"""Missing items: jobs of an older version, and of a damaged state directory, come into the inbox too."""

from __future__ import annotations

from nightherd.engine.contexts import Stores
from nightherd.model.change import Change
from nightherd.model.inbox.changes import AskAboutJob

AT_ONCE = 100
MOST = 10_000
"""Jobs that are seen to at one start."""


async def add_missing_items(context: Stores) -> int:
    """Ask people about every job that waits for them and about which nobody is asked; return how many were seen to.

    However often and by however many it is done, each is asked about once.
    """
    jobs = context.reader.jobs_without_item(MOST)
    at = context.clock.now()
    for first in range(0, len(jobs), AT_ONCE):
        changes: list[Change] = [
            AskAboutJob(job_id=job_id, at=at) for job_id in jobs[first : first + AT_ONCE]
        ]
        await context.state.apply(changes)
    return len(jobs)
