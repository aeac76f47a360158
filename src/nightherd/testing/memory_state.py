"""State in memory: the same answers as the real store, for tests and for trying things out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from nightherd.model.agent_state import AgentState
from nightherd.model.change import Answer, Applied, Change, Row
from nightherd.model.checkpoint import Checkpoint
from nightherd.model.decide import decide
from nightherd.model.delivery import Delivery
from nightherd.model.execution import Execution
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.job import Job, JobQuery, JobStatus, JobTexts
from nightherd.model.limits import Used
from nightherd.model.login_limit import LoginLimit
from nightherd.model.schedule import ScheduleOverride, ScheduleState, Slot
from nightherd.model.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionKey,
    SessionMode,
    SessionQuery,
    SessionStatus,
    is_expired,
)
from nightherd.model.spending import Reservation, Spending, used_of
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.state.images import encode_images
from nightherd.state.kinds import TABLES
from nightherd.state.tables import Table

RowT = TypeVar("RowT")


class MemoryRows:
    """The rows of one memory state, by key."""

    def __init__(self) -> None:
        self._rows: dict[type, dict[str, Row]] = {row_type: {} for row_type in TABLES}
        self._tables: dict[type, Table[Row]] = {row_type: Table(row_type) for row_type in TABLES}

    def write(self, rows: Sequence[Row]) -> None:
        """Replace rows by key: all of them, or none when one cannot be stored."""
        tables = [self._tables[type(row)] for row in rows]
        images = [table.image(row) for table, row in zip(tables, rows, strict=True)]
        named = zip(tables, images, strict=True)
        encode_images([{"table": table.name, "row": image} for table, image in named])
        for table, row, image in zip(tables, rows, images, strict=True):
            self._rows[type(row)][str(image[table.key])] = row

    def all(self, row_type: type[RowT]) -> Sequence[RowT]:
        """Every row of one kind."""
        return [row for row in self._rows[row_type].values() if isinstance(row, row_type)]

    def get(self, kind: type[RowT], key: str) -> RowT | None:
        """The row of that kind with that key."""
        row = self._rows[kind].get(key)
        return row if isinstance(row, kind) else None

    def job_with_dedupe_key(self, key: str) -> Job | None:
        return next((job for job in self.all(Job) if job.dedupe_key == key), None)

    def current_session(self, key: SessionKey) -> Session | None:
        if key.mode is SessionMode.FRESH_PER_JOB:
            return None
        current = [
            session
            for session in self.all(Session)
            if session.status not in SESSION_LIFECYCLE.terminal
            and session.rank >= 0
            and _same(session.key, key)
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
        oldest = min(running, key=lambda job: job.number, default=None)
        return None if oldest is None else oldest.id

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
            and not job.is_terminal
            and job.id != besides
            for job in self.all(Job)
        )

    def open_jobs(self, agent: str, schedule: str, limit: int) -> Sequence[JobId]:
        mine = [
            job
            for job in self.all(Job)
            if (job.agent, job.schedule) == (agent, schedule) and not job.is_terminal
        ]
        return [job.id for job in sorted(mine, key=lambda job: job.number)][:limit]

    def next_job_number(self) -> int:
        return max((job.number for job in self.all(Job)), default=0) + 1

    def next_session_number(self) -> int:
        return max((session.number for session in self.all(Session)), default=0) + 1

    def next_checkpoint_number(self, job_id: JobId) -> int:
        mine = [row.number for row in self.all(Checkpoint) if row.job_id == job_id]
        return max(mine, default=0) + 1

    def checkpoints_of(self, job_id: JobId) -> Sequence[Checkpoint]:
        mine = [row for row in self.all(Checkpoint) if row.job_id == job_id]
        kept = [row for row in mine if row.removed_at is None]
        return sorted(kept, key=lambda checkpoint: checkpoint.number)

    def spent(self, day: str | None, agent: str | None, schedule: str | None) -> Used:
        found = Used()
        for row in self.all(Spending):
            if day not in (None, row.day) or not _of(row, agent, schedule):
                continue
            found += Used(spend=row.cost_microusd, turns=row.turns, tokens=row.tokens)
            if agent is not None:
                found += Used(
                    spend=row.below_cost_microusd, turns=row.below_turns, tokens=row.below_tokens
                )
        return found

    def set_aside(self, *, besides: JobId, agent: str | None, schedule: str | None) -> Used:
        found = Used()
        for row in self.all(Reservation):
            if row.job_id != besides and self._works_for(row.job_id, agent, schedule):
                found += Used(spend=row.cost_microusd, tokens=row.tokens)
        return found

    def _works_for(self, job_id: JobId, agent: str | None, schedule: str | None) -> bool:
        """Whether the job, or one above it, is one of that agent and schedule."""
        job = self.get(Job, job_id)
        while job is not None:
            if agent in (None, job.agent) and schedule in (None, job.schedule):
                return True
            job = self.get(Job, job.parent_job_id) if job.parent_job_id is not None else None
        return False

    def used_below(self, job_id: JobId, *, besides: str) -> Used:
        found = Used()
        for job in self.children(job_id):
            found += self.used_below(job.id, besides=besides)
            if job.id != besides:
                held = self.get(Reservation, job.id)
                aside = Used(spend=held.cost_microusd, tokens=held.tokens) if held else Used()
                found += used_of(job) + aside + Used(spawns=1)
        return found

    def open_children(self, job_id: JobId) -> Sequence[Job]:
        return [job for job in self.children(job_id) if not job.is_terminal]

    def children(self, job_id: JobId) -> Sequence[Job]:
        """The jobs that a job has made, first to last."""
        mine = [job for job in self.all(Job) if job.parent_job_id == job_id]
        return sorted(mine, key=lambda job: job.number)


class MemoryReader:
    """Every question about one memory state."""

    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows

    def find_job(self, job_id: JobId) -> Job | None:
        return self._rows.get(Job, job_id)

    def find_texts(self, job_id: JobId) -> JobTexts | None:
        return self._rows.get(JobTexts, job_id)

    def find_session(self, session_id: SessionId) -> Session | None:
        return self._rows.get(Session, session_id)

    def list_jobs(self, query: JobQuery) -> Sequence[Job]:
        found = [
            job
            for job in self._newest_first()
            if query.agent in (None, job.agent)
            and query.status in (None, job.status)
            and (query.before is None or job.number < query.before)
        ]
        return found[: query.limit]

    def job_ids(self, prefix: str, limit: int) -> Sequence[JobId]:
        return [job.id for job in self._newest_first() if job.id.startswith(prefix)][:limit]

    def spans_of_job(self, job_id: JobId) -> Sequence[tuple[datetime, datetime | None]]:
        return [(one.started_at, one.finished_at) for one in self.list_executions(job_id)]

    def list_executions(self, job_id: JobId) -> Sequence[Execution]:
        mine = [row for row in self._rows.all(Execution) if row.job_id == job_id]
        return sorted(mine, key=lambda execution: execution.epoch)

    def list_checkpoints(self, job_id: JobId) -> Sequence[Checkpoint]:
        return self._rows.checkpoints_of(job_id)

    def removed_checkpoints(self, job_id: JobId) -> Sequence[Checkpoint]:
        mine = [row for row in self._rows.all(Checkpoint) if row.job_id == job_id]
        gone = [row for row in mine if row.removed_at is not None]
        return sorted(gone, key=lambda checkpoint: checkpoint.number)

    def jobs_of_parent(self, job_id: JobId) -> Sequence[Job]:
        return self._rows.children(job_id)

    def spent(self, day: str | None, agent: str | None, schedule: str | None) -> Used:
        return self._rows.spent(day, agent, schedule)

    def used_below(self, job_id: JobId) -> Used:
        return self._rows.used_below(job_id, besides="")

    def jobs_with_checkpoints(self) -> Sequence[JobId]:
        return sorted({row.job_id for row in self._rows.all(Checkpoint)})

    def list_sessions(self, query: SessionQuery) -> Sequence[Session]:
        found = [
            row
            for row in self._rows.all(Session)
            if row.removed_at is None
            and (query.before is None or row.number < query.before)
            and query.agent in (None, row.agent)
            and query.status in (None, row.status)
            and query.mode in (None, row.mode)
        ]
        return sorted(found, key=lambda session: -session.number)[: query.limit]

    def session_ids(self, prefix: str, limit: int) -> Sequence[SessionId]:
        known = sorted(self._rows.all(Session), key=lambda session: session.id)
        own = [row.id for row in known if row.id.startswith(prefix)]
        foreign = sorted(
            (row for row in known if (row.runtime_session_id or "").startswith(prefix)),
            key=lambda session: (session.runtime_session_id, session.number),
        )
        return list(dict.fromkeys([*own, *(row.id for row in foreign)]))[:limit]

    def sessions_of_parent(self, session_id: SessionId) -> Sequence[Session]:
        mine = [row for row in self._rows.all(Session) if row.parent_session_id == session_id]
        return sorted(mine, key=lambda session: session.number)

    def sessions_to_expire(self, at: datetime, limit: int) -> Sequence[Session]:
        waiting = (SessionStatus.CREATED, SessionStatus.PAUSED)
        found = [
            row
            for row in self._rows.all(Session)
            if row.removed_at is None and row.status in waiting and is_expired(row, at)
        ]
        return sorted(found, key=lambda session: session.last_active_at)[:limit]

    def jobs_of_session(self, session_id: SessionId) -> Sequence[Job]:
        mine = [job for job in self._rows.all(Job) if job.session_id == session_id and job.epoch]
        return sorted(mine, key=lambda job: (job.started_at or job.created_at, job.number))

    def jobs_to_wake(self, at: datetime, limit: int) -> Sequence[JobId]:
        due = [
            (job.not_before, job.id)
            for job in self._rows.all(Job)
            if job.status is JobStatus.SUSPENDED
            and job.not_before is not None
            and job.not_before <= at
        ]
        return [job_id for _, job_id in sorted(due)][:limit]

    def sessions_of_runtime(self, runtime_session_id: str) -> Sequence[Session]:
        known = self._rows.all(Session)
        found = [row for row in known if row.runtime_session_id == runtime_session_id]
        return sorted(found, key=lambda session: -session.number)

    def list_agents(self) -> Sequence[AgentState]:
        return sorted(self._rows.all(AgentState), key=lambda state: state.name)

    def list_schedules(self, agent: str | None = None) -> Sequence[ScheduleState]:
        mine = [row for row in self._rows.all(ScheduleState) if agent in (None, row.agent)]
        return sorted(mine, key=lambda state: (state.agent, state.name))

    def list_login_limits(self, at: datetime) -> Sequence[LoginLimit]:
        known = [row for row in self._rows.all(LoginLimit) if row.next_start_at > at]
        return sorted(known, key=lambda row: row.id)

    def list_overrides(self) -> Sequence[ScheduleOverride]:
        known = [row for row in self._rows.all(ScheduleOverride) if row.is_set]
        return sorted(known, key=lambda row: row.id)

    def list_slots(self, schedule_id: str, limit: int) -> Sequence[Slot]:
        mine = [row for row in self._rows.all(Slot) if row.schedule_id == schedule_id]
        return sorted(mine, key=lambda slot: slot.due_at, reverse=True)[:limit]

    def list_deliveries(self, endpoint: str, limit: int) -> Sequence[Delivery]:
        mine = [row for row in self._rows.all(Delivery) if row.endpoint == endpoint]
        return sorted(mine, key=lambda row: row.received_at, reverse=True)[:limit]

    def has_waiting_job(self, agents: Collection[str]) -> bool:
        return any(agent in agents for agent in self._rows.waiting_agents())

    def count_open_jobs(self) -> Mapping[tuple[str, JobStatus], int]:
        waiting = [job for job in self._rows.all(Job) if not job.is_terminal]
        return Counter((job.agent, job.status) for job in waiting)

    def jobs_to_cancel(self, worker: WorkerId) -> Sequence[JobId]:
        running = [job for job in self._rows.all(Job) if job.status is JobStatus.RUNNING]
        wanted = [job for job in running if job.cancel_requested_at is not None]
        return [job.id for job in wanted if job.worker == worker]

    def live_workers(self) -> Sequence[Worker]:
        alive = [row for row in self._rows.all(Worker) if row.status is WorkerStatus.ALIVE]
        return sorted(alive, key=lambda worker: worker.id)

    def find_worker(self, worker_id: str) -> Worker | None:
        return self._rows.get(Worker, worker_id)

    def close(self) -> None:
        """Nothing to give back."""

    def _newest_first(self) -> Sequence[Job]:
        return sorted(self._rows.all(Job), key=lambda job: -job.number)


class MemoryStore:
    """One memory state, open for changes; `reader()` answers questions about the same rows."""

    def __init__(self) -> None:
        self._rows = MemoryRows()

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """Carry out `changes` in order, each whole or not at all, one answer each."""
        answers = []
        for change in changes:
            answer = decide(change, self._rows)
            if isinstance(answer, Applied):
                self._rows.write(answer.rows)
            answers.append(answer)
        return answers

    def take_notices(self) -> Sequence[str]:
        """Nothing ever happens to memory."""
        return ()

    async def close(self) -> None:
        """Nothing to give back."""

    def reader(self) -> MemoryReader:
        """A reader of what this store has; it goes on seeing every later change."""
        return MemoryReader(self._rows)


def _of(row: Spending | Reservation, agent: str | None, schedule: str | None) -> bool:
    return agent in (None, row.agent) and schedule in (None, row.schedule)


def _same(one: SessionKey, other: SessionKey) -> bool:
    """Whether two keys are one; an empty channel or schedule is none."""
    return (one.agent, one.mode, one.channel_id or "", one.schedule or "") == (
        other.agent,
        other.mode,
        other.channel_id or "",
        other.schedule or "",
    )
