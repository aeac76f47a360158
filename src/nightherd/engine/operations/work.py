"""Issues that are work: a person gives one back."""

from __future__ import annotations

from nightherd.errors import NotFoundError, RefusedError
from nightherd.model.change import Applied, Why
from nightherd.model.work.changes import ReleaseWork
from nightherd.model.work.item import WorkId, WorkItem
from nightherd.next_step import Action, NextStep
from nightherd.ports import Clock, StateWriter


async def release_issue(id: WorkId, state: StateWriter, clock: Clock) -> WorkItem:
    """Give the issue back and return it as it is then; its attempts are forgotten.

    A claim is settled by the daemon. `RefusedError` while its job has not ended.
    """
    (answer,) = await state.apply([ReleaseWork(id=id, at=clock.now())])
    if isinstance(answer, Applied):
        (item,) = (row for row in answer.rows if isinstance(row, WorkItem))
        return item
    if answer.why is Why.MISSING:
        raise NotFoundError(answer.message)
    if answer.job is not None:
        raise RefusedError(answer.message, next_step=NextStep(Action.CANCEL_JOB, job=answer.job.id))
    raise RefusedError(answer.message)
