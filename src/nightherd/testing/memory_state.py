"""State in memory: the same answers as the real store, for tests and for trying things out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from nightherd.model.change import Answer, Change, Row
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.decide import carry_out
from nightherd.model.ids import JobId, SessionId
from nightherd.model.inbox.item import InboxAnswer, InboxItem, ItemId, ItemKind
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.limits.limits import Used
from nightherd.model.limits.spending import Reservation, Spending, used_of
from nightherd.model.notifications.notification import Notification, TargetState
from nightherd.model.push.subscription import PushSubscription
from nightherd.model.sessions.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionKey,
    SessionMode,
    SessionStatus,
)
from nightherd.model.workspaces.workspace import Workspace
from nightherd.state.row_images import encode_images
from nightherd.state.table import Table
from nightherd.state.tables import TABLES, table_of
from nightherd.testing.memory_chat import MemoryChatRows
from nightherd.testing.memory_reader import MemoryReader
from nightherd.testing.memory_runs import MemoryRunRows

RowT = TypeVar("RowT", bound=msgspec.Struct)


class MemoryRows(MemoryRunRows, MemoryChatRows):
    """The rows of one memory state, by key."""

    def __init__(self) -> None:
        self._rows: dict[type, dict[str, Row]] = {row_type: {} for row_type in TABLES}
        self._tables: dict[type, Table[Any]] = {row_type: table_of(row_type) for row_type in TABLES}
        self._replaced: list[tuple[type, str, Row | None]] = []
        """What the rows were that the change in hand has replaced."""

    def write(self, rows: Sequence[Row], deleted: Sequence[Row] = ()) -> None:
        """Replace rows by key: all of them, or none when one cannot be stored. Then drop the deleted ones.

        `undo` takes back everything since `begin`.
        """
        tables = [self._tables[type(row)] for row in rows]
        images = [table.image(row) for table, row in zip(tables, rows, strict=True)]
        named = zip(tables, images, strict=True)
        encode_images([{"table": table.name, "row": image} for table, image in named])
        for table, row, image in zip(tables, rows, images, strict=True):
            self._replace(type(row), str(image[table.key]), row)
        for row in deleted:
            self._replace(type(row), str(getattr(row, self._tables[type(row)].key)), None)

    def begin(self) -> None:
        """A change begins: what was written before it stays."""
        self._replaced.clear()

    def undo(self) -> None:
        """Take back what was written since the change began."""
        for kind, key, row in reversed(self._replaced):
            self._put(kind, key, row)
        self._replaced.clear()

    def _replace(self, kind: type, key: str, row: Row | None) -> None:
        self._replaced.append((kind, key, self._rows[kind].get(key)))
        self._put(kind, key, row)

    def _put(self, kind: type, key: str, row: Row | None) -> None:
        if row is None:
            self._rows[kind].pop(key, None)
        else:
            self._rows[kind][key] = row

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

    def jobs_ahead(self, session_id: SessionId, before: int, limit: int) -> Sequence[Job]:
        mine = [job for job in self.all(Job) if job.session_id == session_id]
        ahead = [job for job in mine if job.number < before and not job.is_terminal]
        return sorted(ahead, key=lambda job: job.number)[:limit]

    def oldest_running_job(self, agent: str, *, besides: JobId) -> JobId | None:
        running = [
            job
            for job in self.all(Job)
            if job.agent == agent and job.status is JobStatus.RUNNING and job.id != besides
        ]
        oldest = min(running, key=lambda job: (job.created_at, job.number), default=None)
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
            and not (job.session_id and self.jobs_ahead(job.session_id, job.number, 1))
        ]

    def has_busy_job(self, agent: str, schedule: str, *, besides: JobId) -> bool:
        busy = (JobStatus.PENDING, JobStatus.RUNNING)
        mine = self._open_jobs_of(agent, schedule)
        return any(job.status in busy and job.id != besides for job in mine)

    def occupying_jobs(self, agent: str, schedule: str, limit: int) -> Sequence[Job]:
        mine = self._open_jobs_of(agent, schedule)
        return [job for job in mine if not self._waits_alone(job)][:limit]

    def suspended_jobs(self, agent: str, schedule: str, limit: int) -> Sequence[Job]:
        mine = self._open_jobs_of(agent, schedule)
        return [job for job in mine if self._waits_alone(job)][:limit]

    def _open_jobs_of(self, agent: str, schedule: str) -> list[Job]:
        mine = [job for job in self.all(Job) if (job.agent, job.schedule) == (agent, schedule)]
        return sorted((job for job in mine if not job.is_terminal), key=lambda job: job.number)

    def _waits_alone(self, job: Job) -> bool:
        """Whether the job is suspended in a session of its own."""
        session = self.get(Session, job.session_id or "")
        is_alone = session is not None and session.mode is SessionMode.FRESH_PER_JOB
        return is_alone and job.status is JobStatus.SUSPENDED

    def next_workspace_number(self) -> int:
        return max((row.number for row in self.all(Workspace)), default=0) + 1

    def open_jobs_in_workspace(self, workspace_id: str) -> Sequence[Job]:
        mine = [job for job in self.all(Job) if job.workspace_id == workspace_id]
        return sorted((job for job in mine if not job.is_terminal), key=lambda job: job.number)

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

    def next_item_number(self) -> int:
        return max((item.number for item in self.all(InboxItem)), default=0) + 1

    def pending_items(self, job_id: JobId) -> Sequence[InboxItem]:
        return [one for one in self.items() if one.job_id == job_id and one.is_pending]

    def pending_failures(self, agent: str, schedule: str) -> Sequence[InboxItem]:
        return [
            one
            for one in self.items()
            if one.is_pending
            and one.kind is ItemKind.FAILURE
            and (one.agent, one.schedule) == (agent, schedule)
        ]

    def answers_of(self, item: ItemId) -> Sequence[InboxAnswer]:
        mine = [one for one in self.all(InboxAnswer) if one.item_id == item]
        return sorted(mine, key=lambda one: one.number)

    def items(self) -> Sequence[InboxItem]:
        """Every inbox item, in the order of asking."""
        return sorted(self.all(InboxItem), key=lambda item: item.number)

    def next_notification_number(self) -> int:
        return max((one.number for one in self.all(Notification)), default=0) + 1

    def notify_targets(self) -> Sequence[TargetState]:
        return sorted(self.all(TargetState), key=lambda one: one.id)

    def due_notifications(self, target: str, at: datetime, limit: int) -> Sequence[Notification]:
        return [one for one in self.unsent_notifications(target) if one.due_at <= at][:limit]

    def active_push_subscriptions(self) -> Sequence[PushSubscription]:
        active = [one for one in self.all(PushSubscription) if one.is_active]
        return sorted(active, key=lambda one: (one.created_at, one.id))

    def unsent_notifications(self, target: str) -> Sequence[Notification]:
        mine = [one for one in self.all(Notification) if one.target == target and one.is_open]
        return sorted(mine, key=lambda one: (one.due_at, one.number))

    def open_children(self, job_id: JobId) -> Sequence[Job]:
        return [job for job in self.children(job_id) if not job.is_terminal]

    def children(self, job_id: JobId) -> Sequence[Job]:
        """The jobs that a job has made, first to last."""
        mine = [job for job in self.all(Job) if job.parent_job_id == job_id]
        return sorted(mine, key=lambda job: job.number)


class MemoryStore:
    """One memory state, open for changes; `reader()` answers questions about the same rows."""

    def __init__(self) -> None:
        self._rows = MemoryRows()

    async def apply(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """Carry out `changes` in order, each whole or not at all, one answer each."""
        return [self._carry_out(change) for change in changes]

    def _carry_out(self, change: Change) -> Answer:
        self._rows.begin()
        try:
            return carry_out(
                change, self._rows, lambda one: self._rows.write(one.rows, one.deleted)
            )
        except BaseException:
            self._rows.undo()
            raise

    def take_notices(self) -> Sequence[str]:
        """Nothing ever happens to memory."""
        return ()

    async def close(self) -> None:
        """Nothing to give back."""

    def all(self, kind: type[RowT]) -> Sequence[RowT]:
        """Every row of that kind."""
        return list(self._rows.all(kind))

    def reader(self) -> MemoryReader:
        """A reader of what this store has; it continues seeing every later change."""
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
