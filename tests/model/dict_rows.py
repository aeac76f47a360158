"""Rows in a dictionary, for deciding changes without a store, and what every step of a row has to keep to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

from nightherd.model.agent_state import AGENT_LIFECYCLE, AgentState
from nightherd.model.change import Answer, Applied, Change
from nightherd.model.checkpoint import Checkpoint
from nightherd.model.decide import decide
from nightherd.model.delivery import Delivery
from nightherd.model.execution import EXECUTION_LIFECYCLE, Execution, ExecutionStatus
from nightherd.model.ids import JobId, SessionId
from nightherd.model.job import JOB_LIFECYCLE, Job, JobStatus
from nightherd.model.lifecycle import Lifecycle
from nightherd.model.limits import Used
from nightherd.model.schedule import SCHEDULE_LIFECYCLE, ScheduleState, Slot
from nightherd.model.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionKey,
    SessionMode,
    SessionStatus,
)
from nightherd.model.spending import Reservation, Spending, used_of
from nightherd.model.worker import WORKER_LIFECYCLE, Worker, WorkerStatus

RowT = TypeVar("RowT")

LIFECYCLES: dict[type, Lifecycle[Any]] = {
    Job: JOB_LIFECYCLE,
    Session: SESSION_LIFECYCLE,
    Execution: EXECUTION_LIFECYCLE,
    Worker: WORKER_LIFECYCLE,
    ScheduleState: SCHEDULE_LIFECYCLE,
    AgentState: AGENT_LIFECYCLE,
}
FIRST: dict[type, Any] = {
    Job: JobStatus.PENDING,
    Session: SessionStatus.CREATED,
    Execution: ExecutionStatus.STARTED,
    Worker: WorkerStatus.ALIVE,
}
"""Where a new row begins; agents and schedules have no row before something happens to them."""
WRITTEN_ONCE = (Slot, Delivery)


class DictRows:
    """Rows by kind and key."""

    def __init__(self) -> None:
        self.rows: dict[tuple[type, str], Any] = {}

    def apply(self, change: Change) -> Answer:
        """Decide `change` and write what was decided, after looking at every row it touches."""
        before = dict(self.rows)
        answer = decide(change, self)
        assert self.rows == before, "deciding writes nothing"
        if isinstance(answer, Applied):
            touched = Counter((type(row), key_of(row)) for row in answer.rows)
            assert set(touched.values()) <= {1}, "a row is written once"
            for row in answer.rows:
                check_step(before.get((type(row), key_of(row))), row)
                self.rows[type(row), key_of(row)] = row
        return answer

    def all(self, kind: type[RowT]) -> list[RowT]:
        return [row for row in self.rows.values() if isinstance(row, kind)]

    def get(self, kind: type[RowT], key: str) -> RowT | None:
        row = self.rows.get((kind, key))
        return row if isinstance(row, kind) else None

    def job_with_dedupe_key(self, key: str) -> Job | None:
        return next((job for job in self.all(Job) if job.dedupe_key == key), None)

    def current_session(self, key: SessionKey) -> Session | None:
        current = [
            session
            for session in self.all(Session)
            if key.mode is not SessionMode.FRESH_PER_JOB
            and session.key == key
            and session.status not in SESSION_LIFECYCLE.terminal
            and session.rank >= 0
        ]
        return max(current, key=lambda session: session.place, default=None)

    def open_jobs_in(self, session_id: SessionId) -> int:
        mine = [job for job in self.all(Job) if job.session_id == session_id]
        return sum(not job.is_terminal for job in mine)

    def oldest_running_job(self, agent: str, *, besides: JobId) -> JobId | None:
        running = [
            job
            for job in self.all(Job)
            if job.agent == agent and job.status is JobStatus.RUNNING and job.id != besides
        ]
        return min(running, key=lambda job: job.number).id if running else None

    def waiting_agents(self) -> Sequence[str]:
        waiting = {job.agent for job in self.all(Job) if job.status is JobStatus.PENDING}
        return sorted(waiting)

    def next_waiting_job(self, agent: str, at: datetime) -> Job | None:
        return min(
            self._takeable(agent, at), key=lambda job: (-job.priority, job.number), default=None
        )

    def oldest_waiting_job(self, agent: str, at: datetime) -> Job | None:
        return min(self._takeable(agent, at), key=lambda job: job.number, default=None)

    def count_running(self, agent: str | None = None) -> int:
        running = [job for job in self.all(Job) if job.status is JobStatus.RUNNING]
        return sum(agent in (None, job.agent) for job in running)

    def _takeable(self, agent: str, at: datetime) -> list[Job]:
        free = (SessionStatus.CREATED, SessionStatus.PAUSED)
        return [
            job
            for job in self.all(Job)
            if job.agent == agent
            and job.status is JobStatus.PENDING
            and (job.not_before is None or job.not_before <= at)
            and (
                (session := self.get(Session, job.session_id or "")) is None
                or session.status in free
            )
        ]

    def has_open_job(self, agent: str, schedule: str, *, besides: JobId) -> bool:
        return any(
            (job.agent, job.schedule) == (agent, schedule)
            and job.status not in JOB_LIFECYCLE.terminal
            for job in self.all(Job)
            if job.id != besides
        )

    def open_jobs(self, agent: str, schedule: str, limit: int) -> Sequence[JobId]:
        mine = [
            job
            for job in self.all(Job)
            if (job.agent, job.schedule) == (agent, schedule)
            and job.status not in JOB_LIFECYCLE.terminal
        ]
        return [job.id for job in sorted(mine, key=lambda job: job.number)][:limit]

    def open_children(self, job_id: JobId) -> Sequence[Job]:
        made = [job for job in self.all(Job) if job.parent_job_id == job_id]
        return sorted((job for job in made if not job.is_terminal), key=lambda job: job.number)

    def next_job_number(self) -> int:
        return len(self.all(Job)) + 1

    def next_session_number(self) -> int:
        return len(self.all(Session)) + 1

    def next_checkpoint_number(self, job_id: JobId) -> int:
        return 1 + sum(row.job_id == job_id for row in self.all(Checkpoint))

    def checkpoints_of(self, job_id: JobId) -> Sequence[Checkpoint]:
        mine = [row for row in self.all(Checkpoint) if row.job_id == job_id]
        kept = [row for row in mine if row.removed_at is None]
        return sorted(kept, key=lambda checkpoint: checkpoint.number)

    def spent(self, day: str | None, agent: str | None, schedule: str | None) -> Used:
        found = Used()
        for row in self.all(Spending):
            is_asked_for = agent in (None, row.agent) and schedule in (None, row.schedule)
            if is_asked_for and day in (None, row.day):
                found += Used(spend=row.cost_microusd, turns=row.turns, tokens=row.tokens)
        return found

    def set_aside(self, *, besides: JobId, agent: str | None, schedule: str | None) -> Used:
        found = Used()
        for row in self.all(Reservation):
            is_asked_for = agent in (None, row.agent) and schedule in (None, row.schedule)
            if is_asked_for and row.job_id != besides:
                found += Used(spend=row.cost_microusd, tokens=row.tokens)
        return found

    def used_below(self, job_id: JobId, *, besides: JobId) -> Used:
        found = Used()
        for job in self.all(Job):
            if job.parent_job_id == job_id:
                found += self.used_below(job.id, besides=besides)
                found += Used() if job.id == besides else used_of(job) + Used(spawns=1)
        return found


def key_of(row: Any) -> str:
    """The row's key: its first field."""
    return str(getattr(row, fields(row)[0].name))


def check_step(old: Any, new: Any) -> None:
    """A row begins at its first status, takes only steps of its table, and is never touched once it ended."""
    kind = type(new)
    if old is None:
        assert kind not in FIRST or new.status is FIRST[kind]
        assert not isinstance(new, Job) or new.epoch == 0
        return
    assert kind not in WRITTEN_ONCE
    if isinstance(new, Checkpoint):
        assert (old.number, old.seq, old.epoch) == (new.number, new.seq, new.epoch)
    if kind in LIFECYCLES:
        lifecycle = LIFECYCLES[kind]
        assert old.status not in lifecycle.terminal
        assert old.status is new.status or lifecycle.allows(old.status, new.status)
    if isinstance(new, Job):
        assert isinstance(old, Job)
        is_start = new.status is JobStatus.RUNNING and old.status is not JobStatus.RUNNING
        assert new.epoch == old.epoch + is_start
        assert (new.number, new.session_id) == (old.number, old.session_id)
