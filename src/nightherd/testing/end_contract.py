"""What every state store must do for jobs that end outside their execution; see `state_contract` for how to run it."""

from __future__ import annotations

from datetime import timedelta

from nightherd.model.change import Why
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import JobStatus
from nightherd.model.jobs.outcome import CANCELLED
from nightherd.testing.contract_steps import must_apply, must_refuse
from nightherd.testing.state_contract import Check, OpenState
from nightherd.testing.state_values import (
    BEGINNING,
    checkpoint,
    job_id,
    lose,
    settle,
    start,
    submit,
)

LATER = BEGINNING + timedelta(hours=1)


async def check_job_that_is_given_up_has_a_last_checkpoint_once(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), checkpoint(1, header={"limits": {"turns": 9}}))

    await must_apply(state, lose(1, epoch=1), start(1), lose(1, epoch=2))
    await must_refuse(state, lose(1, epoch=2))

    first, last = state.reader.list_checkpoints(job_id(1))
    assert (first.trigger, first.epoch) == ("post_llm", 1)
    assert (last.trigger, last.status, last.epoch, last.seq) == ("on_error", "failed", 2, 3)
    assert (last.turn, last.header) == (2, {"limits": {"turns": 9}})
    assert last.number > first.number


async def check_job_that_waits_is_cancelled_with_its_last_checkpoint(state: OpenState) -> None:
    await must_apply(state, submit(1), submit(2), start(2), lose(2, epoch=1))

    await must_apply(state, CancelJob(job_id=job_id(1), at=LATER))
    await must_apply(state, CancelJob(job_id=job_id(2), at=LATER))

    assert list(state.reader.list_checkpoints(job_id(1))) == [], "it never began"
    (last,) = state.reader.list_checkpoints(job_id(2))
    assert (last.trigger, last.status, last.created_at) == ("on_cancel", "cancelled", LATER)


async def check_cancelled_job_settles_only_as_cancelled(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), CancelJob(job_id=job_id(1), at=BEGINNING))

    refused = await must_refuse(state, settle(1))
    running = state.reader.find_job(job_id(1))
    await must_apply(state, settle(1, outcome=CANCELLED))

    assert refused.why is Why.CANCELLED
    assert running is not None
    assert running.status is JobStatus.RUNNING
    ended = state.reader.find_job(job_id(1))
    assert ended is not None
    assert ended.status is JobStatus.CANCELLED


END_CHECKS: tuple[Check, ...] = (
    check_job_that_is_given_up_has_a_last_checkpoint_once,
    check_job_that_waits_is_cancelled_with_its_last_checkpoint,
    check_cancelled_job_settles_only_as_cancelled,
)
"""Every check of this part."""
