"""Steps that the contract suites of state stores share: a change that is applied, one that is refused, a suspension."""

from __future__ import annotations

from datetime import datetime, timedelta

from nightherd.model.change import Applied, Change, Refused
from nightherd.model.jobs.changes import SuspendExecution
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.journal.system import Suspension
from nightherd.model.usage import Totals
from nightherd.testing.state_contract import OpenState
from nightherd.testing.state_values import BEGINNING, job_id

NOW = BEGINNING + timedelta(minutes=1)


async def must_apply(state: OpenState, *changes: Change) -> Applied:
    """Apply the changes, which the store must accept; its answer to the last one."""
    answers = await state.writer.apply(changes)
    accepted = [answer for answer in answers if isinstance(answer, Applied)]
    assert len(accepted) == len(answers), answers
    return accepted[-1]


async def must_refuse(state: OpenState, change: Change) -> Refused:
    """Apply the change, which the store must refuse; its answer."""
    (answer,) = await state.writer.apply([change])
    assert isinstance(answer, Refused), answer
    return answer


def suspend(
    number: int, reason: SuspendReason = SuspendReason.LIMIT, *, until: datetime | None = None
) -> SuspendExecution:
    """The first execution of the job is suspended; without `until` it waits for a person."""
    return SuspendExecution(
        job_id=job_id(number),
        epoch=1,
        at=NOW,
        suspension=Suspension(reason=reason, message="enough", code="turns_exceeded", until=until),
        last_seq=5,
        total=Totals(),
        own=Totals(),
    )
