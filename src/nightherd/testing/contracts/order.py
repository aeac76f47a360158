"""What every state store must do to keep jobs in order: within a session, and with slots while jobs are suspended; see `state_contract` for how to run it."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.change import FireSlot, Refused, Why
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.changes import CancelJob, ResumeJob, SubmitJob
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.schedules.schedule import ScheduleStatus, Slot, SlotOutcome
from nightherd.model.sessions.changes import ForkSession, UseSession
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.testing.contracts.state import (
    NOW,
    OpenState,
    checks_in,
    claim,
    must_apply,
    must_refuse,
    suspend,
)
from nightherd.testing.state_values import (
    AGENT,
    BEGINNING,
    NIGHTLY,
    fire,
    job_id,
    lose,
    settle,
    start,
    submit,
)

SOON = BEGINNING + timedelta(minutes=5)


async def check_job_that_lost_its_worker_goes_before_later_ones(state: OpenState) -> None:
    await must_apply(state, _shared(1), start(1), _shared(2, priority=9))

    await must_apply(state, lose(1, epoch=1))

    refused = await must_refuse(state, start(2))
    assert (refused.why, job_id(1) in refused.message) == (Why.SESSION_BUSY, True)
    assert await _claimed(state) == job_id(1)
    assert await _claimed(state) is None
    await must_apply(state, settle(1, epoch=2))
    assert await _claimed(state) == job_id(2)


async def check_all_jobs_of_a_session_and_the_agents_persistent_one_are_found(
    state: OpenState,
) -> None:
    assert state.reader.persistent_session(AGENT) is None
    assert state.reader.find_agent(AGENT) is None

    await must_apply(state, _shared(1), start(1), _shared(2), submit(3))

    session = state.reader.persistent_session(AGENT)
    agent = state.reader.find_agent(AGENT)
    assert session is not None
    assert agent is not None
    assert agent.current_job == job_id(1)
    assert list(state.reader.session_job_ids(session.id)) == [job_id(1), job_id(2)]
    fork = replace(session, id=SessionId("sess-00000009"), parent_session_id=session.id)
    await must_apply(state, ForkSession(session=fork))
    assert state.reader.persistent_session(AGENT) == state.reader.find_session(session.id)
    await must_apply(state, UseSession(session_id=fork.id))
    assert state.reader.persistent_session(AGENT) == state.reader.find_session(fork.id)


async def check_suspended_job_holds_its_session_until_it_has_ended(state: OpenState) -> None:
    await must_apply(state, _shared(1), start(1), _shared(2, priority=9), submit(3))

    await must_apply(state, suspend(1))

    assert [await _claimed(state) for _ in range(2)] == [job_id(3), None]
    assert not state.reader.has_waiting_job({AGENT}), "nothing that a worker could do"
    refused = await must_refuse(state, start(2))
    assert "suspended (limit)" in refused.message
    ahead = state.reader.jobs_ahead(_job(state, 2), 10)
    assert [job.id for job in ahead] == [job_id(1)]
    await must_apply(state, ResumeJob(job_id=job_id(1), at=NOW))
    assert state.reader.has_waiting_job({AGENT})
    assert await _claimed(state) == job_id(1)
    await must_apply(state, settle(1, epoch=2))
    assert await _claimed(state) == job_id(2)


async def check_cancelled_job_lets_the_next_one_begin(state: OpenState) -> None:
    await must_apply(state, _shared(1), start(1), _shared(2), suspend(1))

    await must_apply(state, CancelJob(job_id=job_id(1), at=NOW))

    assert await _claimed(state) == job_id(2)


async def check_session_of_one_job_stays_open_for_a_job_that_was_put_into_it(
    state: OpenState,
) -> None:
    first = submit(1)
    second = replace(submit(2), into=first.session.id)
    third = replace(submit(3), into=first.session.id)
    await must_apply(state, first, start(1), second, third)

    await must_apply(state, settle(1))
    assert _session(state, first).status is SessionStatus.PAUSED
    await must_apply(state, CancelJob(job_id=job_id(2), at=NOW))
    assert _session(state, first).status is SessionStatus.PAUSED
    assert await _claimed(state) == job_id(3)
    await must_apply(state, settle(3))
    assert _session(state, first).status is SessionStatus.COMPLETED


async def check_job_is_refused_where_a_person_is_waited_for_if_it_says_so(
    state: OpenState,
) -> None:
    await must_apply(state, _shared(1), start(1), replace(_shared(2), refuses_held=True))
    await must_apply(state, suspend(1))

    refused = await must_refuse(state, replace(_shared(3), refuses_held=True))
    into = replace(submit(4), into=_shared(1).session.id, refuses_held=True)
    also = await must_refuse(state, into)

    assert (refused.why, also.why) == (Why.SESSION_HELD, Why.SESSION_HELD)
    assert refused.job is not None
    assert refused.job.id == job_id(1)
    await must_apply(state, _shared(5))
    assert _job(state, 5).session_id == _job(state, 1).session_id


async def check_job_is_accepted_behind_one_that_resumes_by_itself(state: OpenState) -> None:
    await must_apply(state, _shared(1), start(1), suspend(1, SuspendReason.RATE_LIMIT, until=SOON))

    await must_apply(state, replace(_shared(2), refuses_held=True))

    refused = await must_refuse(state, start(2))
    assert "resumes by itself" in refused.message
    await must_apply(state, ResumeJob(job_id=job_id(1), at=SOON, only_due=True))
    assert await _claimed(state) == job_id(1)


async def check_child_never_queues_behind_the_job_that_waits_for_it(state: OpenState) -> None:
    await must_apply(state, _shared(1), start(1), _child(2, of=1), _child(3, of=2), _shared(4))

    sessions = [_job(state, number).session_id for number in range(1, 5)]

    assert len(set(sessions[:3])) == 3
    assert sessions[3] == sessions[0], "the agent's session stays the one it was"
    note = state.reader.find_texts(job_id(2))
    assert note is not None
    assert job_id(1) in (note.session_note or "")
    assert [await _claimed(state) for _ in range(3)] == [job_id(2), job_id(3), None]


async def check_jobs_that_wait_for_each_others_children_do_not_queue_in_a_circle(
    state: OpenState,
) -> None:
    first, second = _shared(1), _shared(2, agent="drover")
    await must_apply(state, first, start(1), second, start(2))
    await must_apply(state, _child(3, of=1, agent="drover"), _child(4, of=2))

    waiting, other = _job(state, 3), _job(state, 4)

    assert waiting.session_id == second.session.id, "it waits for its turn"
    assert other.session_id not in (first.session.id, second.session.id)
    assert await _claimed(state) == job_id(4)


async def check_job_that_is_asked_about_a_limit_does_not_queue_behind_who_asks(
    state: OpenState,
) -> None:
    await must_apply(state, _shared(1), start(1))
    asked = _shared(2)
    asked = replace(asked, job=replace(asked.job, trigger_id=job_id(1), asked_about=job_id(1)))

    await must_apply(state, asked, suspend(1))

    assert _job(state, 2).session_id != _job(state, 1).session_id
    assert await _claimed(state) == job_id(2)


def _shared(number: int, *, priority: int = 0, agent: str = AGENT) -> SubmitJob:
    change = submit(number, mode=SessionMode.PERSISTENT, agent=agent)
    return replace(change, job=replace(change.job, priority=priority))


def _child(number: int, *, of: int, agent: str = AGENT) -> SubmitJob:
    change = _shared(number, agent=agent)
    return replace(change, job=replace(change.job, parent_job_id=job_id(of)))


def _job(state: OpenState, number: int) -> Job:
    job = state.reader.find_job(job_id(number))
    assert job is not None
    return job


def _session(state: OpenState, change: SubmitJob) -> Session:
    session = state.reader.find_session(change.session.id)
    assert session is not None
    return session


async def _claimed(state: OpenState) -> JobId | None:
    return await claim(state, NOW, {AGENT: 9, "drover": 9})


RESET = BEGINNING + timedelta(hours=5)


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
    assert f"resume {job_id(1)}" in (slot.reason or "")
    assert other.outcome is SlotOutcome.JOB, "one with a session of its own waits for nobody"


async def check_slot_waits_for_a_job_of_its_session_that_resumes_by_itself(
    state: OpenState,
) -> None:
    shared = submit(1, mode=SessionMode.PERSISTENT)
    await must_apply(state, shared, start(1), suspend(1, SuspendReason.RATE_LIMIT, until=RESET))

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
    return next(slot for slot in state.reader.list_slots(NIGHTLY, 100) if slot.id == change.slot.id)


ORDER_CHECKS = checks_in(globals())
"""Every check of this module."""
