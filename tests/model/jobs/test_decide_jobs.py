"""Jobs: no sequence of changes, right or wrong, leaves the tables (INV-TERMINAL, INV-FENCE, INV-ONCE)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from model.checked_rows import CheckedRows
from nightherd.model.agents.state import AgentState, AgentStatus
from nightherd.model.change import Answer, Applied, Change, Refused, SaveCheckpoint, Why
from nightherd.model.checkpoints.checkpoint import HEADER_LIMIT, Checkpoint
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.jobs.changes import (
    CancelJob,
    LoseExecution,
    RecordRuntimeSession,
    ResumeJob,
    SettleExecution,
    StartExecution,
    SubmitJob,
    SuspendExecution,
)
from nightherd.model.jobs.job import (
    STATUS_OF_EXIT,
    SUMMARY_LIMIT,
    Execution,
    ExecutionStatus,
    ExitReason,
    Job,
    JobStatus,
    JobTexts,
    SuspendReason,
    TriggerType,
)
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.system import Suspension
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals, Usage
from nightherd.testing import state_values

# Few of each, so that wishes collide.
JOBS = [JobId(f"job-2025-01-01-{letter * 6}") for letter in "abcdefghij"]
SESSIONS = [SessionId(f"sess-{letter * 8}") for letter in "abcdefgh"]
MAX_RESTARTS = 2

jobs = st.sampled_from([*JOBS, JobId("job-2025-01-01-nobody")])
likely = st.integers(0, 7)
"""Which of the jobs that a wish fits; the last two mean any job at all."""
stale = st.sampled_from([0, 0, 0, 0, -1, 1])
texts = st.sampled_from([None, "short", "long " * 200])
totals = st.builds(
    Totals,
    turns=st.integers(0, 5),
    messages=st.integers(0, 9),
    usage=st.builds(
        Usage,
        input_tokens=st.integers(0, 50),
        output_tokens=st.integers(0, 50),
        cache_creation_input_tokens=st.integers(0, 50),
        cache_read_input_tokens=st.integers(0, 50),
        cost_microusd=st.integers(0, 10**6).map(MicroUsd),
    ),
)


def plus(one: Totals, other: Totals) -> Totals:
    return Totals(
        turns=one.turns + other.turns,
        messages=one.messages + other.messages,
        usage=one.usage + other.usage,
    )


class JobsMachine(RuleBasedStateMachine):
    """Wishes of several workers, some of them out of date, against one state."""

    @initialize()
    def begin(self) -> None:
        self.rows = CheckedRows()
        self.now = datetime(2025, 1, 1, tzinfo=UTC)
        self.recorded: dict[JobId, Totals] = {}
        """What the executions of a job that ended come to, by its journal."""
        for id in JOBS[:3]:
            self.submit(id, SESSIONS[0], "one", SessionMode.PERSISTENT, "/here", None)

    @rule(
        id=jobs,
        session_id=st.sampled_from(SESSIONS),
        agent=st.sampled_from(["one", "two"]),
        mode=st.sampled_from(SessionMode),
        directory=st.sampled_from(["/here", "/here", "/there"]),
        dedupe_key=st.sampled_from([None, None, None, "k1", "k2"]),
    )
    def submit(
        self,
        id: JobId,
        session_id: SessionId,
        agent: str,
        mode: SessionMode,
        directory: str,
        dedupe_key: str | None,
    ) -> None:
        session = Session(
            id=session_id,
            agent=agent,
            mode=mode,
            status=SessionStatus.CREATED,
            runtime_type="scripted",
            working_directory=directory,
            created_at=self.now,
            last_active_at=self.now,
            channel_id="c1" if mode is SessionMode.PER_CHANNEL else None,
        )
        job = Job(
            id=id,
            agent=agent,
            trigger_type=TriggerType.MANUAL,
            status=JobStatus.PENDING,
            created_at=self.now,
            dedupe_key=dedupe_key,
        )
        every = self.rows.all(Job)
        same_work = [row for row in every if dedupe_key and row.dedupe_key == dedupe_key]
        is_taken = any(row.id == id for row in every)

        answer = self.apply(
            SubmitJob(job=job, texts=JobTexts(job_id=id, prompt="do"), session=session)
        )

        match answer:
            case Refused(why=Why.DUPLICATE, job=known):
                assert [known] == same_work
            case Refused(why=why):
                assert why is Why.ID_TAKEN
                assert not same_work
                assert is_taken or self.rows.get(Session, session_id) is not None
            case Applied(job=submitted):
                assert not same_work
                assert not is_taken
                assert submitted is not None
                home = self.rows.get(Session, submitted.session_id or "")
                assert home is not None
                assert (home.key, home.working_directory) == (session.key, directory)

    @precondition(lambda self: self.has(JobStatus.PENDING))
    @rule(which=likely, any_job=jobs, worker=st.sampled_from(["worker-1", "worker-2"]))
    def start(self, which: int, any_job: JobId, worker: str) -> None:
        id = self.pick(JobStatus.PENDING, which, any_job)
        job = self.rows.get(Job, id)
        is_busy = job is not None and any(
            other.session_id == job.session_id
            and (other.status is JobStatus.RUNNING or other.number < job.number)
            and not other.is_terminal
            for other in self.rows.all(Job)
        )

        answer = self.apply(StartExecution(job_id=id, worker=WorkerId(worker), at=self.now))

        if job is None:
            expect(answer, Why.MISSING)
        elif job.status is not JobStatus.PENDING:
            expect(answer, Why.STATUS)
        elif is_busy:
            expect(answer, Why.SESSION_BUSY)
        else:
            assert isinstance(answer, Applied)
            assert answer.job is not None
            assert (answer.job.epoch, answer.job.worker) == (job.epoch + 1, worker)

    @precondition(lambda self: self.has(JobStatus.RUNNING))
    @rule(which=likely, any_job=jobs, epoch_off=stale, name=st.sampled_from(["r1", "r2"]))
    def record_runtime_session(self, which: int, any_job: JobId, epoch_off: int, name: str) -> None:
        id = self.pick(JobStatus.RUNNING, which, any_job)
        epoch = self.epoch_of(id) + epoch_off

        answer = self.apply_owned(
            RecordRuntimeSession(job_id=id, epoch=epoch, runtime_session_id=name, at=self.now),
            id,
            epoch,
        )

        if isinstance(answer, Applied):
            for row in answer.rows:
                assert isinstance(row, Job | Execution | Session)
                assert row.runtime_session_id == name

    @precondition(lambda self: self.has(JobStatus.RUNNING))
    @rule(
        which=likely,
        any_job=jobs,
        epoch_off=stale,
        exit_reason=st.sampled_from(ExitReason),
        own=totals,
        text=texts,
    )
    def settle(
        self,
        which: int,
        any_job: JobId,
        epoch_off: int,
        exit_reason: ExitReason,
        own: Totals,
        text: str | None,
    ) -> None:
        id = self.pick(JobStatus.RUNNING, which, any_job)
        epoch = self.epoch_of(id) + epoch_off
        before = self.rows.get(Job, id)
        total = plus(own, self.recorded.get(id, Totals()))
        wish = SettleExecution(
            job_id=id,
            epoch=epoch,
            at=self.now,
            outcome=Outcome(exit_reason=exit_reason, error=text),
            last_seq=7,
            total=total,
            own=own,
            answer=text,
        )

        answer = self.apply_owned(wish, id, epoch)

        if isinstance(answer, Applied):
            self.recorded[id] = total
            ended, kept = answer.job, self.rows.get(JobTexts, id)
            assert ended is not None
            assert before is not None
            assert (ended.status, ended.exit_reason) == (STATUS_OF_EXIT[exit_reason], exit_reason)
            assert (ended.turns, ended.messages) == (total.turns, total.messages)
            assert ended.cost_microusd == total.usage.cost_microusd
            assert kept is not None
            assert kept.summary == text

    def apply_leaving(
        self, wish: LoseExecution | SuspendExecution, before: Job | None, total: Totals
    ) -> Job | None:
        """Apply it; the job if that counted. One that was to be cancelled is, and is not returned."""
        answer = self.apply_owned(wish, wish.job_id, wish.epoch)
        if not isinstance(answer, Applied):
            return None
        self.recorded[wish.job_id] = total
        assert before is not None
        assert answer.job is not None
        if before.cancel_requested_at is None:
            return answer.job
        assert answer.job.status is JobStatus.CANCELLED
        return None

    @precondition(lambda self: self.has(JobStatus.RUNNING))
    @rule(which=likely, any_job=jobs, epoch_off=stale, spent=totals)
    def lose(self, which: int, any_job: JobId, epoch_off: int, spent: Totals) -> None:
        id = self.pick(JobStatus.RUNNING, which, any_job)
        epoch = self.epoch_of(id) + epoch_off
        before = self.rows.get(Job, id)
        total = plus(spent, self.recorded.get(id, Totals()))
        wish = LoseExecution(
            job_id=id,
            epoch=epoch,
            at=self.now,
            reason="gone",
            max_restarts=MAX_RESTARTS,
            last_seq=5,
            total=total,
            own=spent,
        )

        job = self.apply_leaving(wish, before, total)

        if job is not None and before is not None:
            is_last = before.restart_count == MAX_RESTARTS
            assert job.status is (JobStatus.FAILED if is_last else JobStatus.PENDING)

    @precondition(lambda self: self.has(JobStatus.RUNNING))
    @rule(
        which=likely,
        any_job=jobs,
        epoch_off=stale,
        spent=totals,
        reason=st.sampled_from(SuspendReason),
        minutes=st.sampled_from([None, 0, 5]),
    )
    def suspend(
        self,
        which: int,
        any_job: JobId,
        epoch_off: int,
        spent: Totals,
        reason: SuspendReason,
        minutes: int | None,
    ) -> None:
        id = self.pick(JobStatus.RUNNING, which, any_job)
        epoch = self.epoch_of(id) + epoch_off
        before = self.rows.get(Job, id)
        total = plus(spent, self.recorded.get(id, Totals()))
        until = None if minutes is None else self.now + timedelta(minutes=minutes)
        wish = SuspendExecution(
            job_id=id,
            epoch=epoch,
            at=self.now,
            suspension=Suspension(reason=reason, message="enough", until=until),
            last_seq=6,
            total=total,
            own=spent,
        )

        job = self.apply_leaving(wish, before, total)

        if job is not None:
            assert job.status is JobStatus.SUSPENDED
            assert (job.suspend_reason, job.not_before) == (reason, until)
            home = self.rows.get(Session, job.session_id or "")
            assert home is not None
            assert home.status is SessionStatus.PAUSED

    @precondition(lambda self: self.has(JobStatus.SUSPENDED))
    @rule(which=likely, any_job=jobs, only_due=st.booleans(), prompt=st.sampled_from([None, "on"]))
    def resume(self, which: int, any_job: JobId, only_due: bool, prompt: str | None) -> None:
        id = self.pick(JobStatus.SUSPENDED, which, any_job)
        job = self.rows.get(Job, id)
        at = self.now

        answer = self.apply(ResumeJob(job_id=id, at=at, prompt=prompt, only_due=only_due))

        if job is None:
            expect(answer, Why.MISSING)
        elif job.status is not JobStatus.SUSPENDED:
            expect(answer, Why.STATUS)
        elif only_due and (job.not_before is None or job.not_before > at):
            expect(answer, Why.TOO_EARLY)
        else:
            assert isinstance(answer, Applied)
            assert answer.job is not None
            assert (answer.job.status, answer.job.suspend_reason) == (JobStatus.PENDING, None)
            assert answer.job.restart_count == job.restart_count

    @rule(id=jobs)
    def cancel(self, id: JobId) -> None:
        job = self.rows.get(Job, id)

        answer = self.apply(CancelJob(job_id=id, at=self.now))

        if job is None:
            expect(answer, Why.MISSING)
        elif job.is_terminal:
            expect(answer, Why.STATUS)
        else:
            assert isinstance(answer, Applied)
            assert answer.job is not None
            if job.status is JobStatus.RUNNING:
                assert answer.job.cancel_requested_at is not None
            else:
                assert answer.job.exit_reason is ExitReason.CANCELLED

    @precondition(lambda self: self.has(JobStatus.RUNNING))
    @rule(
        which=likely,
        any_job=jobs,
        epoch_off=stale,
        size=st.sampled_from([10, HEADER_LIMIT + 1]),
    )
    def save_checkpoint(self, which: int, any_job: JobId, epoch_off: int, size: int) -> None:
        id = self.pick(JobStatus.RUNNING, which, any_job)
        epoch = self.epoch_of(id) + epoch_off
        checkpoint = Checkpoint(
            id="",
            job_id=id,
            number=0,
            epoch=epoch,
            seq=3,
            trigger="after_tool",
            status="running",
            created_at=self.now,
            header={"x": "x" * size},
        )
        wish = SaveCheckpoint(epoch=epoch, checkpoint=checkpoint)

        answer = self.apply(wish) if size > HEADER_LIMIT else self.apply_owned(wish, id, epoch)

        if isinstance(answer, Applied):
            assert size <= HEADER_LIMIT
            numbers = [row.number for row in self.rows.all(Checkpoint) if row.job_id == id]
            assert sorted(numbers) == list(range(1, len(numbers) + 1))

    def apply_owned(self, wish: Change, id: JobId, epoch: int) -> Answer:
        """Apply what only the owner of a running job may ask."""
        job = self.rows.get(Job, id)

        answer = self.apply(wish)

        if job is None:
            expect(answer, Why.MISSING)
        elif epoch != job.epoch:
            expect(answer, Why.FENCED)
        elif job.status is not JobStatus.RUNNING:
            expect(answer, Why.STATUS)
        elif is_cancelled(job) and ends_otherwise(wish):
            expect(answer, Why.CANCELLED)
        else:
            assert isinstance(answer, Applied)
        return answer

    def apply(self, change: Change) -> Answer:
        self.now += timedelta(seconds=1)
        answer = self.rows.apply(change)
        if isinstance(answer, Applied):
            assert answer.job is not None
            assert self.rows.get(Job, answer.job.id) == answer.job
        return answer

    def has(self, status: JobStatus) -> bool:
        return any(job.status is status for job in self.rows.all(Job))

    def pick(self, status: JobStatus, which: int, any_job: JobId) -> JobId:
        """Mostly a job that the wish fits, so that long lives are lived; sometimes any other."""
        fitting = [job.id for job in self.rows.all(Job) if job.status is status]
        return fitting[which % len(fitting)] if fitting and which < 6 else any_job

    def epoch_of(self, id: JobId) -> int:
        job = self.rows.get(Job, id)
        return job.epoch if job is not None else 1

    @invariant()
    def a_session_has_at_most_one_running_job_and_is_active_just_then(self) -> None:
        running = Counter(
            job.session_id for job in self.rows.all(Job) if job.status is JobStatus.RUNNING
        )
        for session in self.rows.all(Session):
            assert running[session.id] == (session.status is SessionStatus.ACTIVE)

    @invariant()
    def a_running_job_has_one_open_execution_and_no_other_job_has_any(self) -> None:
        for job in self.rows.all(Job):
            mine = [row for row in self.rows.all(Execution) if row.job_id == job.id]
            assert sorted(row.epoch for row in mine) == list(range(1, job.epoch + 1))
            still_open = [row.epoch for row in mine if row.status is ExecutionStatus.STARTED]
            assert still_open == ([job.epoch] if job.status is JobStatus.RUNNING else [])
            lost = sum(row.status is ExecutionStatus.LOST for row in mine)
            is_last_counted = job.status is not JobStatus.CANCELLED
            assert job.restart_count in (min(lost, MAX_RESTARTS), lost - (not is_last_counted))

    @invariant()
    def jobs_are_numbered_and_their_dedupe_keys_are_unique(self) -> None:
        every = self.rows.all(Job)
        assert sorted(job.number for job in every) == list(range(1, len(every) + 1))
        keys = [job.dedupe_key for job in every if job.dedupe_key is not None]
        assert len(keys) == len(set(keys))
        assert all(self.rows.get(JobTexts, job.id) is not None for job in every)

    @invariant()
    def an_ended_job_says_how_and_no_other_does(self) -> None:
        for job in self.rows.all(Job):
            assert job.is_terminal == (job.exit_reason is not None) == (job.finished_at is not None)
            assert job.exit_reason is None or job.status is STATUS_OF_EXIT[job.exit_reason]
            assert len(job.summary or "") <= SUMMARY_LIMIT
            assert len(job.error or "") <= SUMMARY_LIMIT

    @invariant()
    def sums_equal_their_parts(self) -> None:
        executions, every_job = self.rows.all(Execution), self.rows.all(Job)
        for job in every_job:
            recorded = self.recorded.get(job.id, Totals())
            mine = [row for row in executions if row.job_id == job.id]
            assert job.turns == sum(row.turns for row in mine) == recorded.turns
            cost = sum(row.cost_microusd for row in mine)
            assert job.cost_microusd == cost == recorded.usage.cost_microusd
        for session in self.rows.all(Session):
            inside = [job for job in every_job if job.session_id == session.id]
            assert inside
            assert len(inside) == 1 or session.mode is not SessionMode.FRESH_PER_JOB
            assert session.job_count == sum(job.epoch > 0 for job in inside)
            assert session.turn_count == sum(job.turns for job in inside)
            assert session.message_count == sum(job.messages for job in inside)
            assert session.cost_microusd == sum(job.cost_microusd for job in inside)

    @invariant()
    def an_agent_is_running_just_when_a_job_of_it_is(self) -> None:
        for agent in self.rows.all(AgentState):
            mine = [job for job in self.rows.all(Job) if job.agent == agent.name]
            running = [job for job in mine if job.status is JobStatus.RUNNING]
            oldest = min(running, key=lambda job: job.number).id if running else None
            assert agent.current_job == oldest
            assert (agent.status is AgentStatus.RUNNING) == bool(running)


def is_cancelled(job: Job) -> bool:
    return job.cancel_requested_at is not None


def ends_otherwise(wish: Change) -> bool:
    """Whether the change would end a job in another way than as cancelled."""
    return (
        isinstance(wish, SettleExecution) and wish.outcome.exit_reason is not ExitReason.CANCELLED
    )


def expect(answer: Answer, why: Why) -> None:
    assert isinstance(answer, Refused)
    assert answer.why is why
    assert answer.message


JobsMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
test_no_sequence_of_changes_leaves_the_tables = JobsMachine.TestCase


def test_a_clock_that_was_set_back_gives_no_time_back() -> None:
    rows = CheckedRows()
    for change in (state_values.submit(1), state_values.start(1, minute=5)):
        rows.apply(change)

    rows.apply(state_values.settle(1, minute=2))

    (execution,) = rows.all(Execution)
    assert execution.duration_ms == 0
