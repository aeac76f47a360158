"""Wake-ups: suspended jobs whose time has come wait for their next execution. Any process may do it."""

from __future__ import annotations

from nightherd.engine.workshop import Workshop
from nightherd.model.change import Applied, Change, ResumeJob

AT_ONCE = 50


async def wake_jobs(workshop: Workshop) -> int:
    """Let every job go on whose time has come; how many did. However many ask at once, each goes on once."""
    at = workshop.clock.now()
    due = workshop.reader.jobs_to_wake(at, AT_ONCE)
    if not due:
        return 0
    changes: list[Change] = [ResumeJob(job_id=one, at=at, only_due=True) for one in due]
    answers = await workshop.state.apply(changes)
    return sum(isinstance(answer, Applied) for answer in answers)
