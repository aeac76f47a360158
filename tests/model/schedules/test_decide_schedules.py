"""Schedules and workers: one outcome per due instant, and a worker that was given up stays given up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from model.checked_rows import CheckedRows
from nightherd.model.agents.state import AgentState, AgentStatus
from nightherd.model.change import (
    Applied,
    EndWorker,
    ExtendLease,
    FireSlot,
    Refused,
    RegisterWorker,
    ResetAgent,
    Why,
)
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.jobs.changes import SettleExecution, StartExecution, SubmitJob
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, JobTexts, TriggerType
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.schedules.schedule import (
    OverrideSchedule,
    PlanSchedule,
    ScheduleOverride,
    ScheduleState,
    ScheduleStatus,
    Slot,
    SlotOutcome,
    schedule_id,
    slot_id,
)
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.model.usage import Totals
from nightherd.model.worker import Worker, WorkerStatus

AGENT = "one"
START = datetime(2025, 1, 1, tzinfo=UTC)
WORKERS = [WorkerId("worker-1"), WorkerId("worker-2")]

names = st.sampled_from(["hourly", "nightly"])
hours = st.integers(0, 5)
workers = st.sampled_from(WORKERS)


class SchedulesMachine(RuleBasedStateMachine):
    """Several processes that see the same instants come, and one person who switches schedules."""

    @initialize()
    def begin(self) -> None:
        self.rows = CheckedRows()
        self.now = START
        self.made = 0

    @rule(name=names, hour=hours, is_skipped=st.booleans())
    def fire(self, name: str, hour: int, is_skipped: bool) -> None:
        schedule, due_at = schedule_id(AGENT, name), START + timedelta(hours=hour)
        slot = Slot(
            id=slot_id(schedule, due_at),
            schedule_id=schedule,
            due_at=due_at,
            outcome=SlotOutcome.SKIPPED,
            decided_at=self.now,
            reason="still running" if is_skipped else None,
        )
        known = self.rows.get(Slot, slot.id)
        state = self.rows.get(ScheduleState, schedule)
        is_off = state is not None and state.status is ScheduleStatus.DISABLED
        before = len(self.rows.all(Job))

        answer = self.rows.apply(
            FireSlot(
                slot=slot,
                agent=AGENT,
                schedule=name,
                next_run_at=due_at + timedelta(hours=1),
                job=None if is_skipped else self.job_of(name),
            )
        )

        made = len(self.rows.all(Job)) - before
        if known is not None:
            assert isinstance(answer, Refused)
            assert answer.why is Why.DUPLICATE
            assert made == 0
        elif is_off:
            assert isinstance(answer, Refused)
            assert (answer.why, made) == (Why.STATUS, 0)
        else:
            assert isinstance(answer, Applied)
            assert made == (not is_skipped)

    def job_of(self, name: str) -> SubmitJob:
        self.made += 1
        job_id = JobId(f"job-2025-01-01-{self.made:06d}")
        return SubmitJob(
            job=Job(
                id=job_id,
                agent=AGENT,
                trigger_type=TriggerType.SCHEDULE,
                status=JobStatus.PENDING,
                created_at=self.now,
                schedule=name,
            ),
            texts=JobTexts(job_id=job_id, prompt="do"),
            session=Session(
                id=SessionId(f"sess-{self.made:08d}"),
                agent=AGENT,
                mode=SessionMode.FRESH_PER_JOB,
                status=SessionStatus.CREATED,
                runtime_type="scripted",
                working_directory="/here",
                created_at=self.now,
                last_active_at=self.now,
            ),
        )

    @rule(name=names, is_on=st.booleans())
    def switch(self, name: str, is_on: bool) -> None:
        key = schedule_id(AGENT, name)
        change = OverrideSchedule(agent=AGENT, schedule=name, at=self.now, by="me", enabled=is_on)

        answer = self.rows.apply(change)

        assert isinstance(answer, Applied)
        after = self.rows.get(ScheduleState, key)
        assert after is not None
        assert (after.status is not ScheduleStatus.DISABLED) == is_on
        assert is_on or after.next_run_at is None

    @rule(name=names, hour=hours, is_enabled=st.booleans(), pause_after=st.integers(0, 2))
    def plan(self, name: str, hour: int, is_enabled: bool, pause_after: int) -> None:
        key = schedule_id(AGENT, name)
        known, said = self.rows.get(ScheduleState, key), self.rows.get(ScheduleOverride, key)
        due = START + timedelta(hours=hour)

        answer = self.rows.apply(
            PlanSchedule(
                agent=AGENT,
                schedule=name,
                rule="every 1h",
                enabled=is_enabled,
                pause_after=pause_after,
                next_due_at=due,
                next_run_at=due,
                replaces=known.next_due_at if known is not None else None,
            )
        )

        assert isinstance(answer, Applied)
        after = self.rows.get(ScheduleState, key)
        assert after is not None
        wanted = is_enabled if said is None or said.enabled is None else said.enabled
        is_on = wanted and not after.is_paused
        assert (after.status is not ScheduleStatus.DISABLED) == is_on
        assert after.next_due_at == (due if is_on else None)

    @rule(is_failure=st.booleans())
    def run_the_oldest_job(self, is_failure: bool) -> None:
        self.now += timedelta(minutes=1)
        waiting = [job for job in self.rows.all(Job) if job.status is JobStatus.PENDING]
        if not waiting:
            return
        job = min(waiting, key=lambda job: job.number)
        schedule = schedule_id(AGENT, job.schedule or "")
        before = self.rows.get(ScheduleState, schedule)
        reason = ExitReason.ERROR if is_failure else ExitReason.SUCCESS
        outcome = Outcome(exit_reason=reason, error="broke" if is_failure else None)

        self.rows.apply(StartExecution(job_id=job.id, worker=WORKERS[0], at=self.now))
        self.rows.apply(
            SettleExecution(
                job_id=job.id,
                epoch=1,
                at=self.now,
                outcome=outcome,
                last_seq=1,
                total=Totals(),
                own=Totals(),
            )
        )

        after = self.rows.get(ScheduleState, schedule)
        assert before is not None
        assert after is not None
        assert after.last_run_at == self.now
        assert after.last_error == ("broke" if is_failure else None)
        assert after.consecutive_failures == (before.consecutive_failures + 1) * is_failure
        if before.status is ScheduleStatus.DISABLED or after.is_paused:
            assert after.status is ScheduleStatus.DISABLED

    @rule()
    def reset_agent(self) -> None:
        known = self.rows.get(AgentState, AGENT)

        answer = self.rows.apply(ResetAgent(agent=AGENT))

        if known is None:
            assert isinstance(answer, Refused)
        else:
            after = self.rows.get(AgentState, AGENT)
            assert after is not None
            assert (after.status, after.error_message) == (AgentStatus.IDLE, None)

    @rule(id=workers)
    def register(self, id: WorkerId) -> None:
        known = self.rows.get(Worker, id)
        worker = Worker(
            id=id,
            status=WorkerStatus.ALIVE,
            host="here",
            pid=7,
            process_started="1",
            boot_id="b",
            deadline=1.0,
            started_at=self.now,
            heartbeat_at=self.now,
        )

        answer = self.rows.apply(RegisterWorker(worker=worker))

        assert isinstance(answer, Applied if known is None else Refused)

    @rule(id=workers, deadline=st.floats(0, 100))
    def extend(self, id: WorkerId, deadline: float) -> None:
        known = self.rows.get(Worker, id)

        answer = self.rows.apply(ExtendLease(worker_id=id, deadline=deadline, at=self.now))

        is_alive = known is not None and known.status is WorkerStatus.ALIVE
        assert isinstance(answer, Applied if is_alive else Refused)

    @rule(id=workers, status=st.sampled_from([WorkerStatus.LEFT, WorkerStatus.LOST]))
    def end(self, id: WorkerId, status: WorkerStatus) -> None:
        known = self.rows.get(Worker, id)

        answer = self.rows.apply(EndWorker(worker_id=id, status=status, at=self.now))

        is_alive = known is not None and known.status is WorkerStatus.ALIVE
        assert isinstance(answer, Applied if is_alive else Refused)

    @invariant()
    def a_schedule_runs_exactly_while_it_has_a_job_or_is_off(self) -> None:
        for state in self.rows.all(ScheduleState):
            is_busy = self.rows.has_busy_job(AGENT, state.name, besides=JobId(""))
            if state.status is not ScheduleStatus.DISABLED:
                assert (state.status is ScheduleStatus.RUNNING) == is_busy

    @invariant()
    def every_slot_has_one_outcome_and_every_job_one_slot(self) -> None:
        slots = self.rows.all(Slot)
        by_job = [slot.job_id for slot in slots if slot.outcome is SlotOutcome.JOB]
        assert sorted(by_job, key=str) == sorted(job.id for job in self.rows.all(Job))
        for slot in slots:
            is_skipped = slot.outcome is SlotOutcome.SKIPPED
            assert is_skipped == (slot.job_id is None) == (slot.reason is not None)


SchedulesMachine.TestCase.settings = settings(
    max_examples=50, stateful_step_count=30, deadline=None
)
test_no_sequence_of_changes_doubles_a_slot_or_revives_a_worker = SchedulesMachine.TestCase


def test_an_instant_is_one_slot_in_every_time_zone() -> None:
    utc = datetime(2025, 1, 1, 12, 0, tzinfo=UTC)

    assert slot_id("a/b", utc) == slot_id("a/b", utc.astimezone())
    assert slot_id("a/b", utc) != slot_id("a/b", utc + timedelta(microseconds=1))
