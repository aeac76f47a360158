"""Issues that are work: a person gives one back."""

from __future__ import annotations

from nightherd.errors import NotFoundError, RefusedError
from nightherd.model.change import Applied, Why
from nightherd.model.work.changes import ReleaseWork
from nightherd.model.work.item import WorkId, WorkItem
from nightherd.next_step import Action, NextStep
from nightherd.ports import Clock, StateWriter


async def release_issue(
    id: WorkId, state: StateWriter, clock: Clock, *, is_forced: bool = False
) -> WorkItem:
    """Give the issue back and return it as it is then; its attempts are forgotten.

    A claim is settled by a daemon or worker; with `is_forced` nothing more is written to the tracker about one that is
    being settled. `RefusedError` while its job has not ended.
    """
    (answer,) = await state.apply([ReleaseWork(id=id, at=clock.now(), is_forced=is_forced)])
    if isinstance(answer, Applied):
        (item,) = (row for row in answer.rows if isinstance(row, WorkItem))
        return item
    if answer.why is Why.MISSING:
        raise NotFoundError(answer.message)
    if answer.job is not None:
        raise RefusedError(answer.message, next_step=NextStep(Action.CANCEL_JOB, job=answer.job.id))
    hint = "release it by force if it cannot be settled; then nothing more is written about it"
    raise RefusedError(answer.message, hint=hint if answer.why is Why.STATUS else None)
