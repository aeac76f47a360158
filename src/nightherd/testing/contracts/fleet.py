"""What every state store must do for the fleet: workers, agents, schedules, slots, checkpoints, adoption.

The second half of the state contract; see `state_contract` for how to run checks.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.agents.state import AgentStatus
from nightherd.model.change import (
    AdoptRows,
    EndWorker,
    ExtendLease,
    RegisterWorker,
    ResetAgent,
    Why,
)
from nightherd.model.checkpoints.checkpoint import HEADER_LIMIT
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import CancelJob, RecordContainer, RecordRuntimeSession, SubmitJob
from nightherd.model.jobs.job import ExecutionStatus, ExitReason, JobQuery, JobStatus
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.schedules.schedule import (
    OverrideSchedule,
    PlanSchedule,
    ScheduleStatus,
    SlotOutcome,
)
from nightherd.model.sessions.session import SessionMode, SessionQuery, SessionStatus
from nightherd.model.worker import WorkerStatus
from nightherd.testing.contracts.state import OpenState, checks_in, claim, must_apply, must_refuse
from nightherd.testing.state_values import (
    AGENT,
    BEGINNING,
    NIGHTLY,
    checkpoint,
    fire,
    job_id,
    lose,
    settle,
    start,
    submit,
    worker,
)

_PLAN = PlanSchedule(
    agent=AGENT,
    schedule="nightly",
    rule="every 1h",
    enabled=True,
    pause_after=2,
    next_due_at=None,
    next_run_at=None,
)
FAILURE = Outcome(exit_reason=ExitReason.ERROR, error="lame")


async def check_worker_lives_until_it_ends_and_not_again(state: OpenState) -> None:
    one, other = worker("worker-00000001"), worker("worker-00000002")
    later = BEGINNING + timedelta(seconds=10)

    await must_apply(state, RegisterWorker(worker=one), RegisterWorker(worker=other))
    again = await must_refuse(state, RegisterWorker(worker=one))
    await must_apply(state, ExtendLease(worker_id=one.id, deadline=99.25, at=later))
    extended = replace(one, deadline=99.25, heartbeat_at=later)
    assert list(state.reader.live_workers()) == [extended, other]
    await must_apply(state, EndWorker(worker_id=one.id, status=WorkerStatus.LOST, at=later))
    late = await must_refuse(state, ExtendLease(worker_id=one.id, deadline=999.0, at=later))

    assert (again.why, late.why) == (Why.ID_TAKEN, Why.STATUS)
    assert list(state.reader.live_workers()) == [other]


async def check_lost_execution_goes_back_until_it_was_lost_too_often(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), lose(1, epoch=1), start(1))
    rescued = state.reader.find_job(job_id(1))
    fenced = await must_refuse(state, settle(1, epoch=1))
    await must_apply(state, lose(1, epoch=2))
    failed = state.reader.find_job(job_id(1))

    assert rescued is not None
    assert failed is not None
    assert (rescued.status, rescued.epoch, rescued.restart_count) == (JobStatus.RUNNING, 2, 1)
    assert fenced.why is Why.FENCED
    assert (failed.status, failed.error_code) == (JobStatus.FAILED, "interrupted")
    executions = state.reader.list_executions(job_id(1))
    assert [execution.epoch for execution in executions] == [1, 2]
    assert {one.status for one in executions} == {ExecutionStatus.LOST}


async def check_waiting_job_is_cancelled_at_once_and_a_running_one_by_its_owner(
    state: OpenState,
) -> None:
    first, later = BEGINNING, BEGINNING + timedelta(minutes=1)
    await must_apply(state, submit(1), submit(2), start(2))

    await must_apply(state, CancelJob(job_id=job_id(1), at=first))
    await must_apply(state, CancelJob(job_id=job_id(2), at=first))
    await must_apply(state, CancelJob(job_id=job_id(2), at=later))
    started = await must_refuse(state, start(1))
    again = await must_refuse(state, CancelJob(job_id=job_id(1), at=first))

    job, running = state.reader.find_job(job_id(1)), state.reader.find_job(job_id(2))
    assert job is not None
    assert running is not None
    assert (job.status, job.exit_reason) == (JobStatus.CANCELLED, ExitReason.CANCELLED)
    assert (running.status, running.cancel_requested_at) == (JobStatus.RUNNING, first)
    assert running.worker is not None
    assert list(state.reader.jobs_to_cancel(WorkerId(running.worker))) == [running.id]
    assert (started.why, again.why) == (Why.STATUS, Why.STATUS)


async def check_cancelled_job_whose_worker_is_lost_ends_cancelled(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), CancelJob(job_id=job_id(1), at=BEGINNING))

    await must_apply(state, lose(1, epoch=1))

    job = state.reader.find_job(job_id(1))
    assert job is not None
    assert (job.status, job.exit_reason) == (JobStatus.CANCELLED, ExitReason.CANCELLED)


async def check_jobs_are_claimed_by_importance_then_age_within_their_limits(
    state: OpenState,
) -> None:
    await must_apply(state, submit(1), submit(2), submit(3, agent="drover"), _urgent(4))
    now = BEGINNING + timedelta(minutes=1)

    assert not state.reader.has_waiting_job({"nobody"})
    assert state.reader.has_waiting_job({"drover"})
    taken = [await claim(state, now, {AGENT: 2, "drover": 1}, fleet_limit=3) for _ in range(4)]
    await must_apply(state, settle(4))
    last = await claim(state, now, {AGENT: 2, "drover": 1}, fleet_limit=3)

    assert taken == [job_id(4), job_id(1), job_id(3), None]
    assert last == job_id(2)
    running = state.reader.list_jobs(JobQuery(status=JobStatus.RUNNING))
    assert {job.worker for job in running} == {"worker-00000009"}
    assert [job.id for job in running] == [job_id(3), job_id(2), job_id(1)]
    assert await claim(state, now, {AGENT: 9, "drover": 9}) is None


async def check_job_that_waited_long_goes_before_more_important_ones(state: OpenState) -> None:
    await must_apply(state, submit(1), _urgent(2))

    assert await claim(state, BEGINNING + timedelta(hours=1), {AGENT: 1}) == job_id(1)


async def check_job_of_a_busy_session_or_of_later_is_not_claimed(state: OpenState) -> None:
    shared = [submit(number, mode=SessionMode.PERSISTENT) for number in (1, 2)]
    later = submit(3)
    later = replace(later, job=replace(later.job, not_before=BEGINNING + timedelta(hours=1)))
    await must_apply(state, *shared, later)
    now = BEGINNING + timedelta(minutes=1)

    first = await claim(state, now, {AGENT: 9})
    second = await claim(state, now, {AGENT: 9})
    third = await claim(state, BEGINNING + timedelta(hours=2), {AGENT: 9})

    assert (first, second, third) == (job_id(1), None, job_id(3))


def _urgent(number: int) -> SubmitJob:
    change = submit(number)
    return replace(change, job=replace(change.job, priority=5))


async def check_agent_shows_its_oldest_running_job_and_its_last_failure(state: OpenState) -> None:
    await must_apply(state, submit(1), submit(2), submit(3, agent="drover"), start(3))
    await must_apply(state, start(2), start(1))
    drover, busy = state.reader.list_agents()
    await must_apply(state, settle(1, outcome=FAILURE), settle(2, outcome=FAILURE))
    _, failed = state.reader.list_agents()
    await must_apply(state, ResetAgent(agent=AGENT))
    _, reset = state.reader.list_agents()

    assert (drover.name, drover.current_job) == ("drover", job_id(3))
    assert (busy.name, busy.status) == (AGENT, AgentStatus.RUNNING)
    assert busy.current_job == job_id(1)
    assert (failed.status, failed.error_message) == (AgentStatus.ERROR, "lame")
    assert (failed.current_job, failed.last_job) == (None, job_id(2))
    assert (reset.status, reset.error_message) == (AgentStatus.IDLE, None)
    assert (await must_refuse(state, ResetAgent(agent="nobody"))).why is Why.MISSING


async def check_slot_has_exactly_one_outcome(state: OpenState) -> None:
    fired = await must_apply(state, fire(1, minute=1))
    again = await must_refuse(state, fire(2, minute=1))
    await must_apply(state, fire(None, minute=2, reason="busy"))

    assert fired.job is not None
    assert fired.job.id == job_id(1)
    assert again.why is Why.DUPLICATE
    assert state.reader.find_job(job_id(2)) is None
    newest, oldest = state.reader.list_slots(NIGHTLY, 10)
    assert (newest.outcome, newest.reason, newest.job_id) == (SlotOutcome.SKIPPED, "busy", None)
    assert (oldest.outcome, oldest.job_id) == (SlotOutcome.JOB, job_id(1))
    assert list(state.reader.list_slots(NIGHTLY, 1)) == [newest]
    assert list(state.reader.list_slots("nobody/never", 10)) == []


async def check_slots_of_a_span_are_listed_newest_first(state: OpenState) -> None:
    for minute in (1, 2, 3, 4):
        await must_apply(state, fire(None, minute=minute, reason="busy"))

    def minutes(first: int, last: int, limit: int = 10) -> list[int]:
        since, until = (BEGINNING + timedelta(minutes=one) for one in (first, last))
        slots = state.reader.slots_between(NIGHTLY, since, until, limit)
        return [round((slot.due_at - BEGINNING).total_seconds() / 60) for slot in slots]

    assert minutes(2, 4) == [3, 2]
    assert minutes(0, 60) == [4, 3, 2, 1]
    assert minutes(0, 60, limit=2) == [4, 3]
    assert minutes(5, 60) == []
    assert list(state.reader.slots_between("nobody/never", BEGINNING, BEGINNING, 9)) == []


async def check_schedule_follows_its_job(state: OpenState) -> None:
    await must_apply(state, fire(1, minute=1))
    (running,) = state.reader.list_schedules(AGENT)
    await must_apply(state, start(1), settle(1, outcome=FAILURE))
    (rested,) = state.reader.list_schedules(AGENT)

    assert (running.id, running.status) == (NIGHTLY, ScheduleStatus.RUNNING)
    assert running.next_run_at == BEGINNING + timedelta(days=1)
    assert (rested.status, rested.last_error) == (ScheduleStatus.IDLE, "lame")
    assert rested.consecutive_failures == 1
    assert list(state.reader.list_schedules("nobody")) == []


async def check_schedule_is_switched_off_and_on(state: OpenState) -> None:
    off = OverrideSchedule(
        agent=AGENT, schedule="nightly", at=BEGINNING, by="someone", enabled=False
    )

    await must_apply(state, fire(1, minute=1), off)
    await must_apply(state, off)
    (disabled,) = state.reader.list_schedules()
    (said,) = state.reader.list_overrides()
    refused = await must_refuse(state, fire(2, minute=2))
    await must_apply(state, replace(off, enabled=True, rule="5m"))
    (running,) = state.reader.list_schedules(AGENT)
    await must_apply(state, replace(off, enabled=None, reset=True))

    assert (disabled.status, disabled.next_run_at) == (ScheduleStatus.DISABLED, None)
    assert (said.id, said.enabled, said.updated_by) == (NIGHTLY, False, "someone")
    assert refused.why is Why.STATUS
    assert running.status is ScheduleStatus.RUNNING
    assert list(state.reader.list_overrides()) == []


async def check_slot_that_would_overlap_is_skipped_or_waits(state: OpenState) -> None:
    await must_apply(state, fire(1, minute=1))

    waiting = await must_refuse(state, replace(fire(2, minute=2), max_overlap=1, waits=True))
    await must_apply(state, replace(fire(2, minute=2), max_overlap=1))
    await must_apply(state, replace(fire(3, minute=3), max_overlap=2))

    assert waiting.why is Why.FULL
    third, second, _ = state.reader.list_slots(NIGHTLY, 10)
    assert (third.outcome, third.job_id) == (SlotOutcome.JOB, job_id(3))
    assert second.outcome is SlotOutcome.SKIPPED
    assert second.reason is not None
    assert job_id(1) in second.reason


async def check_plan_holds_while_nothing_moved(state: OpenState) -> None:
    due = BEGINNING + timedelta(hours=1)
    plan = replace(_PLAN, next_due_at=due, next_run_at=due)

    await must_apply(state, plan)
    stale = await must_refuse(state, replace(plan, next_due_at=BEGINNING))
    again = await must_apply(state, replace(plan, replaces=due))
    other = await must_refuse(state, replace(plan, replaces=due, override="5m"))
    (planned,) = state.reader.list_schedules(AGENT)

    assert (stale.why, other.why) == (Why.STALE, Why.STALE)
    assert again.rows == ()
    assert (planned.next_due_at, planned.rule, planned.pause_after) == (due, "every 1h", 2)


async def check_schedule_that_fails_again_and_again_pauses_itself(state: OpenState) -> None:
    await must_apply(state, _PLAN)
    for number in (1, 2):
        failing = settle(number, outcome=FAILURE)
        await must_apply(state, fire(number, minute=number), start(number), failing)
    (paused,) = state.reader.list_schedules(AGENT)
    on = OverrideSchedule(agent=AGENT, schedule="nightly", at=BEGINNING, by="someone", enabled=True)
    await must_apply(state, on)
    (idle,) = state.reader.list_schedules(AGENT)

    assert (paused.status, paused.last_error) == (ScheduleStatus.DISABLED, "lame")
    assert (paused.consecutive_failures, paused.next_run_at) == (2, None)
    assert (idle.status, idle.consecutive_failures) == (ScheduleStatus.IDLE, 0)


async def check_checkpoints_are_numbered_fenced_and_bounded(state: OpenState) -> None:
    await must_apply(state, submit(1), submit(2), start(1))
    header = {"limits": {"turns": 7, "spend": None}, "hooks": ["a", "ä"]}

    await must_apply(state, checkpoint(1), checkpoint(1, header=header), checkpoint(1, seq=5))
    fenced = await must_refuse(state, replace(checkpoint(1), epoch=9))
    waiting = await must_refuse(state, replace(checkpoint(2), epoch=0))
    large = await must_refuse(state, checkpoint(1, header={"x": "y" * HEADER_LIMIT}))

    first, second = state.reader.list_checkpoints(job_id(1))
    assert (first.number, second.number) == (1, 2)
    assert (first.header, second.header) == (header, {})
    assert first.created_at == BEGINNING
    assert (fenced.why, waiting.why, large.why) == (Why.FENCED, Why.STATUS, Why.TOO_LARGE)
    assert list(state.reader.list_checkpoints(job_id(2))) == []


async def check_adopted_rows_are_numbered_and_known_ones_left_alone(state: OpenState) -> None:
    await must_apply(state, submit(1))
    known = state.reader.find_job(job_id(1))
    new = submit(2)
    job = replace(new.job, status=JobStatus.COMPLETED, session_id=new.session.id)
    stranger = replace(submit(1).job, agent="thief")
    # In an order in which texts come before their job and the job before its session.
    rows = (new.texts, job, new.session, stranger)

    await must_apply(state, AdoptRows(rows=rows, source="elsewhere"))
    again = await must_apply(state, AdoptRows(rows=rows, source="elsewhere"))

    assert again.rows == ()
    assert state.reader.find_job(job_id(1)) == known
    assert state.reader.find_job(job_id(2)) == replace(job, number=2)
    assert state.reader.find_texts(job_id(2)) == new.texts
    assert state.reader.find_session(new.session.id) == replace(new.session, number=2)


async def check_agent_shows_the_container_of_its_current_job(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1))
    container = RecordContainer(job_id=job_id(1), epoch=1, container_id="c1")
    await must_refuse(state, replace(container, epoch=2))
    await must_apply(state, container)

    (running,) = state.reader.list_agents()
    await must_apply(state, settle(1))
    (idle,) = state.reader.list_agents()

    assert (running.current_job, running.container_id) == (job_id(1), "c1")
    assert (idle.current_job, idle.container_id) == (None, None)


async def check_sessions_are_listed_and_found_by_their_runtimes_id(state: OpenState) -> None:
    for number in (1, 2, 3):
        await must_apply(state, submit(number), start(number), _recorded(number))

    numbers = [session.number for session in state.reader.list_sessions(SessionQuery(limit=2))]
    older = [session.number for session in state.reader.list_sessions(SessionQuery(before=2))]
    found = state.reader.sessions_of_runtime("uuid-odd")

    assert (numbers, older) == ([3, 2], [1])
    assert [session.number for session in found] == [3, 1]
    assert {session.status for session in found} == {SessionStatus.ACTIVE}
    assert list(state.reader.sessions_of_runtime("nobody's")) == []


def _recorded(number: int) -> RecordRuntimeSession:
    name = "uuid-odd" if number % 2 else "uuid-even"
    return RecordRuntimeSession(
        job_id=job_id(number), epoch=1, runtime_session_id=name, at=BEGINNING
    )


FLEET_CHECKS = checks_in(globals())
"""Every check of this module."""
