"""Questions about a state that lives in memory, answered as the real reader answers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from nightherd.model.agents.state import AgentState
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.inbox.item import (
    InboxAnswer,
    InboxItem,
    InboxQuery,
    InboxTexts,
    ItemId,
    ItemKind,
)
from nightherd.model.jobs.filter import filter_of, fits
from nightherd.model.jobs.job import CHILD_WAITS, Execution, Job, JobQuery, JobStatus, JobTexts
from nightherd.model.limits.limits import Used
from nightherd.model.limits.login import LoginLimit
from nightherd.model.limits.spending import Spending
from nightherd.model.notifications.notification import (
    LEDGER,
    Notification,
    NotificationId,
    NotificationQuery,
    NotificationTexts,
    NotifyCursor,
    TargetState,
)
from nightherd.model.schedules.schedule import ScheduleOverride, ScheduleState, Slot
from nightherd.model.sessions.filter import session_filter_of, session_fits
from nightherd.model.sessions.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionKey,
    SessionMode,
    SessionQuery,
    SessionStatus,
    is_expired,
)
from nightherd.model.webhooks import Delivery
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.testing.memory_access import MemoryAccessReader
from nightherd.testing.memory_runs import MemoryRunReader
from nightherd.testing.memory_visits import MemoryVisitReader
from nightherd.testing.memory_work import MemoryWorkReader
from nightherd.testing.memory_workspaces import MemoryWorkspaceReader

if TYPE_CHECKING:
    from nightherd.testing.memory_state import MemoryRows


class MemoryReader(
    MemoryWorkspaceReader, MemoryRunReader, MemoryAccessReader, MemoryVisitReader, MemoryWorkReader
):
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
        newest = self._newest_first()
        numbers = [job.number for job in newest]
        first = numbers.index(query.before) + 1 if query.before in numbers else 0
        filter = filter_of(query)
        found = [job for job in newest[first:] if filter is not None and fits(job, filter)]
        return found[: query.limit]

    def job_ids(self, prefix: str, limit: int) -> Sequence[JobId]:
        return [job.id for job in self._newest_first() if job.id.startswith(prefix)][:limit]

    def spans_of_job(self, job_id: JobId) -> Sequence[tuple[datetime, datetime | None]]:
        return [
            (execution.started_at, execution.finished_at)
            for execution in self.list_executions(job_id)
        ]

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

    def jobs_below(self, job_id: JobId) -> Sequence[Job]:
        found = list(self._rows.children(job_id))
        for child in tuple(found):
            found += self.jobs_below(child.id)
        return sorted(found, key=lambda job: job.number)

    def spent(self, day: str | None, agent: str | None, schedule: str | None) -> Used:
        return self._rows.spent(day, agent, schedule)

    def spent_by_agent(self, day: str) -> Mapping[str, Used]:
        agents = {row.agent for row in self._rows.all(Spending) if row.day == day}
        return {agent: self._rows.spent(day, agent, None) for agent in agents}

    def used_below(self, job_id: JobId) -> Used:
        return self._rows.used_below(job_id, besides="")

    def jobs_with_checkpoints(self) -> Sequence[JobId]:
        kept = (row for row in self._rows.all(Checkpoint) if row.removed_at is None)
        return sorted({row.job_id for row in kept})

    def list_sessions(self, query: SessionQuery) -> Sequence[Session]:
        newest = self._newest_sessions()
        numbers = [row.number for row in newest]
        first = numbers.index(query.before) + 1 if query.before in numbers else 0
        filter = session_filter_of(query)
        found = [
            row
            for row in newest[first:]
            if row.removed_at is None and filter is not None and session_fits(row, filter)
        ]
        return found[: query.limit]

    def session_ids(self, prefix: str, limit: int) -> Sequence[SessionId]:
        known = self._newest_sessions()
        own = [row.id for row in known if row.id.startswith(prefix)]
        foreign = [row for row in known if (row.runtime_session_id or "").startswith(prefix)]
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

    def persistent_session(self, agent: str) -> Session | None:
        mine = [
            row
            for row in self._rows.all(Session)
            if row.agent == agent
            and row.mode is SessionMode.PERSISTENT
            and row.status not in SESSION_LIFECYCLE.terminal
            and row.rank >= 0
        ]
        return max(mine, key=lambda session: session.place, default=None)

    def session_job_ids(self, session_id: SessionId) -> Sequence[JobId]:
        mine = [job for job in self._rows.all(Job) if job.session_id == session_id]
        return [job.id for job in sorted(mine, key=lambda job: job.number)]

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

    def find_agent(self, name: str) -> AgentState | None:
        return self._rows.get(AgentState, name)

    def list_agents(self) -> Sequence[AgentState]:
        return sorted(self._rows.all(AgentState), key=lambda state: state.name)

    def list_schedules(self, agent: str | None = None) -> Sequence[ScheduleState]:
        mine = [row for row in self._rows.all(ScheduleState) if agent in (None, row.agent)]
        return sorted(mine, key=lambda state: (state.agent, state.name))

    def list_login_limits(self, at: datetime) -> Sequence[LoginLimit]:
        known = [row for row in self._rows.all(LoginLimit) if row.next_start_at > at]
        return sorted(known, key=lambda row: row.id)

    def list_overrides(self) -> Sequence[ScheduleOverride]:
        known = self._rows.all(ScheduleOverride)
        return sorted(known, key=lambda row: row.id)

    def list_slots(self, schedule_id: str, limit: int) -> Sequence[Slot]:
        mine = [row for row in self._rows.all(Slot) if row.schedule_id == schedule_id]
        return sorted(mine, key=lambda slot: slot.due_at, reverse=True)[:limit]

    def slots_between(
        self, schedule_id: str, since: datetime, until: datetime, limit: int
    ) -> Sequence[Slot]:
        mine = [
            row
            for row in self._rows.all(Slot)
            if row.schedule_id == schedule_id and since <= row.due_at < until
        ]
        return sorted(mine, key=lambda slot: slot.due_at, reverse=True)[:limit]

    def list_deliveries(self, endpoint: str, limit: int) -> Sequence[Delivery]:
        mine = [row for row in self._rows.all(Delivery) if row.endpoint == endpoint]
        return sorted(mine, key=lambda row: row.received_at, reverse=True)[:limit]

    def has_waiting_job(self, agents: Collection[str]) -> bool:
        waiting = [job for job in self._rows.all(Job) if job.status is JobStatus.PENDING]
        return any(
            job.agent in agents
            and all(one.status is not JobStatus.SUSPENDED for one in self.jobs_ahead(job, 1_000))
            for job in waiting
        )

    def jobs_ahead(self, job: Job, limit: int) -> Sequence[Job]:
        if job.session_id is None:
            return ()
        return self._rows.jobs_ahead(job.session_id, job.number, limit)

    def current_session(self, key: SessionKey) -> Session | None:
        return self._rows.current_session(key)

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

    def find_item(self, item_id: ItemId) -> InboxItem | None:
        return self._rows.get(InboxItem, item_id)

    def find_item_texts(self, item_id: ItemId) -> InboxTexts | None:
        return self._rows.get(InboxTexts, item_id)

    def list_items(self, query: InboxQuery) -> Sequence[InboxItem]:
        found = [
            one
            for one in reversed(self._rows.items())
            if one.is_pending is query.is_pending
            and query.kind in (None, one.kind)
            and query.agent in (None, one.agent)
            and (query.before is None or one.number < query.before)
        ]
        return found[: query.limit]

    def item_ids(self, prefix: str, limit: int) -> Sequence[ItemId]:
        newest = reversed(self._rows.items())
        return [one.id for one in newest if one.id.startswith(prefix)][:limit]

    def items_of_job(self, job_id: JobId) -> Sequence[InboxItem]:
        return [one for one in self._rows.items() if one.job_id == job_id]

    def list_answers(self, item_id: ItemId) -> Sequence[InboxAnswer]:
        return self._rows.answers_of(item_id)

    def items_to_expire(self, at: datetime, limit: int) -> Sequence[InboxItem]:
        due = [
            (one.expires_at, one)
            for one in self._rows.items()
            if one.is_pending and one.expires_at is not None and one.expires_at <= at
        ]
        return [one for _, one in sorted(due, key=lambda pair: pair[0])][:limit]

    def count_pending_items(self) -> Mapping[ItemKind, int]:
        return Counter(one.kind for one in self._rows.items() if one.is_pending)

    def jobs_without_item(self, limit: int) -> Sequence[JobId]:
        jobs = sorted(self._rows.all(Job), key=lambda job: job.number)
        found = [job.id for job in jobs if _lacks_item(job, self.items_of_job(job.id))]
        return found[:limit]

    def oldest_pending_item(self) -> InboxItem | None:
        return next((one for one in self._rows.items() if one.is_pending), None)

    def find_notification(self, notification_id: NotificationId) -> Notification | None:
        return self._rows.get(Notification, notification_id)

    def find_notification_texts(self, notification_id: NotificationId) -> NotificationTexts | None:
        return self._rows.get(NotificationTexts, notification_id)

    def list_notifications(self, query: NotificationQuery) -> Sequence[Notification]:
        newest = sorted(self._rows.all(Notification), key=lambda one: one.number, reverse=True)
        found = [
            one
            for one in newest
            if query.target in (None, one.target)
            and query.status in (None, one.status)
            and (query.before is None or one.number < query.before)
        ]
        return found[: query.limit]

    def list_notify_targets(self) -> Sequence[TargetState]:
        return self._rows.notify_targets()

    def due_notify_targets(self, at: datetime) -> Sequence[str]:
        return [
            one.id
            for one in self._rows.notify_targets()
            if one.is_active
            and (one.paused_until is None or one.paused_until <= at)
            and self._rows.due_notifications(one.id, at, 1)
        ]

    def count_open_notifications(self, at: datetime) -> Mapping[str, int]:
        open_ = [one for one in self._rows.all(Notification) if one.is_open and one.due_at <= at]
        return Counter(one.target for one in open_)

    def notified_change(self, cursor: str = LEDGER) -> int | None:
        found = self._rows.get(NotifyCursor, cursor)
        return None if found is None else found.change

    def close(self) -> None:
        """Nothing to give back."""

    def _newest_sessions(self) -> Sequence[Session]:
        return sorted(
            self._rows.all(Session), key=lambda row: (row.created_at, row.number), reverse=True
        )

    def _newest_first(self) -> Sequence[Job]:
        return sorted(
            self._rows.all(Job), key=lambda job: (job.created_at, job.number), reverse=True
        )


def _lacks_item(job: Job, items: Sequence[InboxItem]) -> bool:
    """Whether the job waits for a person or failed, and nobody is asked about it."""
    if job.status is JobStatus.SUSPENDED:
        is_own = job.not_before is None and job.error_code != CHILD_WAITS
        return is_own and not any(one.is_pending for one in items)
    is_part = job.parent_job_id is not None or job.node_id is not None
    is_own = not is_part and job.worker is not None
    has_item = any(one.kind is ItemKind.FAILURE for one in items)
    return job.status is JobStatus.FAILED and is_own and not has_item
