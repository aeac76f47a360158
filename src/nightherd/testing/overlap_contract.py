"""What every state store must do with slots while jobs are suspended; see `state_contract` for how to run checks."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.change import FireSlot, Refused, Why
from nightherd.model.jobs.changes import CancelJob, ResumeJob, SubmitJob
from nightherd.model.jobs.job import JobStatus, SuspendReason
from nightherd.model.schedules.schedule import ScheduleStatus, Slot, SlotOutcome
from nightherd.model.sessions.session import SessionMode
from nightherd.testing.contract_steps import NOW, must_apply, suspend
from nightherd.testing.state_contract import Check, OpenState
from nightherd.testing.state_values import AGENT, BEGINNING, NIGHTLY, fire, job_id, start, submit

SOON = BEGINNING + timedelta(hours=5)


async def check_suspended_job_with_its_own_session_does_not_occupy_its_schedule(
    state: OpenState,
) -> None:
    await must_apply(state, _slot(1), start(1))
    while_running = await _fired(state, _slot(2))

    await must_apply(state, suspend(1))

    assert _status(state) is ScheduleStatus.IDLE
    after = await _fired(state, _slot(3))
    assert while_running.outcome is SlotOutcome.SKIPPED
    assert while_running.reason == f"overlap: a job has not ended yet: {job_id(1)}"
    assert (after.outcome, after.job_id) == (SlotOutcome.JOB, job_id(3))
    assert _status(state) is ScheduleStatus.RUNNING
    while_pending = await _fired(state, _slot(4))
    assert while_pending.outcome is SlotOutcome.SKIPPED


async def check_schedule_has_no_more_suspended_jobs_than_it_may(state: OpenState) -> None:
    for number in (1, 2):
        await must_apply(state, _slot(number), start(number), suspend(number))

    third = await _fired(state, _slot(3))
    waiting = await state.writer.apply([replace(_slot(4), waits=True)])

    assert third.outcome is SlotOutcome.SKIPPED
    assert third.reason is not None
    assert third.reason.startswith("max_suspended: 2 jobs are suspended: ")
    assert f"{job_id(1)} is suspended (limit)" in third.reason
    assert [one.why for one in waiting if isinstance(one, Refused)] == [Why.FULL]
    await must_apply(state, CancelJob(job_id=job_id(1), at=NOW))
    assert (await _fired(state, _slot(5))).outcome is SlotOutcome.JOB


async def check_schedule_runs_again_when_its_suspended_job_does(state: OpenState) -> None:
    await must_apply(state, _slot(1), start(1), suspend(1))

    await must_apply(state, ResumeJob(job_id=job_id(1), at=NOW))

    assert _status(state) is ScheduleStatus.RUNNING
    assert (await _fired(state, _slot(2))).outcome is SlotOutcome.SKIPPED


async def check_suspended_job_in_a_shared_session_occupies_its_schedule(state: OpenState) -> None:
    await must_apply(state, _slot(1, mode=SessionMode.PERSISTENT), start(1), suspend(1))

    slot = await _fired(state, _slot(2, mode=SessionMode.PERSISTENT))

    assert _status(state) is ScheduleStatus.IDLE
    assert slot.outcome is SlotOutcome.SKIPPED
    assert (slot.reason or "").startswith(f"overlap: a job has not ended yet: {job_id(1)} is susp")


async def check_slot_is_skipped_where_a_person_is_waited_for_in_its_session(
    state: OpenState,
) -> None:
    await must_apply(state, submit(1, mode=SessionMode.PERSISTENT), start(1), suspend(1))

    slot = await _fired(state, _slot(2, mode=SessionMode.PERSISTENT))
    other = await _fired(state, _slot(3))

    held = f"session {submit(1).session.id} is held by {job_id(1)}, which is suspended (limit)"
    assert slot.outcome is SlotOutcome.SKIPPED
    assert (slot.reason or "").startswith(held)
    assert f"nightherd jobs resume {job_id(1)}" in (slot.reason or "")
    assert other.outcome is SlotOutcome.JOB, "one with a session of its own waits for nobody"


async def check_slot_waits_for_a_job_of_its_session_that_resumes_by_itself(
    state: OpenState,
) -> None:
    shared = submit(1, mode=SessionMode.PERSISTENT)
    await must_apply(state, shared, start(1), suspend(1, SuspendReason.RATE_LIMIT, until=SOON))

    slot = await _fired(state, _slot(2, mode=SessionMode.PERSISTENT))

    job = state.reader.find_job(job_id(2))
    assert slot.outcome is SlotOutcome.JOB
    assert job is not None
    assert (job.status, job.session_id) == (JobStatus.PENDING, shared.session.id)


def _slot(number: int, *, mode: SessionMode = SessionMode.FRESH_PER_JOB) -> FireSlot:
    change = fire(number, minute=number)
    assert isinstance(change.job, SubmitJob)
    session = replace(change.job.session, mode=mode)
    return replace(change, job=replace(change.job, session=session), max_overlap=1, max_suspended=2)


def _status(state: OpenState) -> ScheduleStatus:
    (schedule,) = state.reader.list_schedules(AGENT)
    return schedule.status


async def _fired(state: OpenState, change: FireSlot) -> Slot:
    await must_apply(state, change)
    return next(one for one in state.reader.list_slots(NIGHTLY, 100) if one.id == change.slot.id)


OVERLAP_CHECKS: tuple[Check, ...] = (
    check_suspended_job_with_its_own_session_does_not_occupy_its_schedule,
    check_schedule_has_no_more_suspended_jobs_than_it_may,
    check_schedule_runs_again_when_its_suspended_job_does,
    check_suspended_job_in_a_shared_session_occupies_its_schedule,
    check_slot_is_skipped_where_a_person_is_waited_for_in_its_session,
    check_slot_waits_for_a_job_of_its_session_that_resumes_by_itself,
)
"""Every check of this part."""
