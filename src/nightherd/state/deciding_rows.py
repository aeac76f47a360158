"""The rows as decisions ask for them (`model/decisions/rows.py`), from a SQLite database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

import msgspec

from nightherd.db.connection import Database, Value
from nightherd.db.schema import Queries
from nightherd.model.chat.conversation import Conversation, ConversationId, MessagingSession
from nightherd.model.chat.message import ChatMessage, ChatTurn
from nightherd.model.chat.post import OutboxPost
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.ids import JobId, SessionId
from nightherd.model.inbox.item import InboxAnswer, InboxItem, ItemId
from nightherd.model.jobs.job import Execution, Job
from nightherd.model.limits.limits import Used
from nightherd.model.notifications.notification import Notification, TargetState
from nightherd.model.push.subscription import PushSubscription
from nightherd.model.sessions.session import Session, SessionKey
from nightherd.model.text import utc_text
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.rows import (
    RunNodes,
    WorkflowEvent,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowRun,
    items_in,
)
from nightherd.model.workflows.run import RunId
from nightherd.state.kept_rows import KeptRows
from nightherd.state.reader import find_current_session, spent, used_below
from nightherd.state.row_repair import write_row
from nightherd.state.rows import SqliteRows
from nightherd.state.run_reader import used_in_run
from nightherd.state.table import Table
from nightherd.state.tables import TABLES

RowT = TypeVar("RowT", bound=msgspec.Struct)


OnDamage = Callable[[str, str, Mapping[str, Value]], None]
"""Called with a damaged row before it is replaced: its table, its key, and its values as they were found."""


def unnoticed(table: str, key: str, found: Mapping[str, Value]) -> None:
    """Ignore the row."""


class DecidingRows(SqliteRows):
    """Every row as of the open transaction, and what decisions need to know about them."""

    def __init__(
        self, database: Database, queries: Queries, on_damage: OnDamage = unnoticed
    ) -> None:
        super().__init__(database, queries, TABLES)
        self.kept = KeptRows(database)
        self._on_damage = on_damage

    def restored(self, table: Table[RowT], key: str, found: Mapping[str, Value]) -> RowT | None:
        """The damaged row as the ledger has it; the database has it back from here on."""
        row = super().restored(table, key, found)
        if row is not None:
            self._on_damage(table.name, key, found)
            write_row(self._database, table, row)
        return row

    def get(self, kind: type[RowT], key: str) -> RowT | None:
        """The row of that kind with that key, from memory where it is known."""
        row = self.kept.get(kind, key)
        if row is None:
            row = super().get(kind, key)
            if row is not None:
                self.kept.put(kind, key, row)
        return row

    def job_with_dedupe_key(self, key: str) -> Job | None:
        return self.find(Job, "job_by_dedupe_key", key)

    def current_session(self, key: SessionKey) -> Session | None:
        return find_current_session(self, key)

    def open_jobs_in(self, session_id: SessionId) -> int:
        return self.number("open_jobs_of_session", session_id)

    def jobs_ahead(self, session_id: SessionId, before: int, limit: int) -> Sequence[Job]:
        return self.list(Job, "jobs_ahead", (session_id, before, limit))

    def oldest_running_job(self, agent: str, *, besides: JobId) -> JobId | None:
        found = self.values("oldest_running_job", agent, besides)
        return JobId(str(found[0][0])) if found else None

    def waiting_agents(self) -> Sequence[str]:
        return [str(agent) for (agent,) in self.values("waiting_agents")]

    def next_waiting_job(self, agent: str, at: datetime) -> Job | None:
        return self._job_found("next_waiting_job", agent, utc_text(at))

    def oldest_waiting_job(self, agent: str, at: datetime) -> Job | None:
        return self._job_found("oldest_waiting_job", agent, utc_text(at))

    def count_running(self, agent: str | None = None) -> int:
        if agent is None:
            return self.number("count_running")
        return self.number("count_running_of_agent", agent)

    def has_busy_job(self, agent: str, schedule: str, *, besides: JobId) -> bool:
        return bool(self.values("busy_job_of_schedule", agent, schedule, besides))

    def occupying_jobs(self, agent: str, schedule: str, limit: int) -> Sequence[Job]:
        return self.list(Job, "occupying_jobs_of_schedule", (agent, schedule, limit))

    def suspended_jobs(self, agent: str, schedule: str, limit: int) -> Sequence[Job]:
        return self.list(Job, "suspended_jobs_of_schedule", (agent, schedule, limit))

    def open_children(self, job_id: JobId) -> Sequence[Job]:
        made = self.list(Job, "jobs_of_parent", (job_id,))
        return [job for job in made if not job.is_terminal]

    def next_job_number(self) -> int:
        return self.kept.last_number(Job, partial(self.number, "last_job_number")) + 1

    def next_session_number(self) -> int:
        return self.kept.last_number(Session, partial(self.number, "last_session_number")) + 1

    def next_checkpoint_number(self, job_id: JobId) -> int:
        return self.number("last_checkpoint_number", job_id) + 1

    def checkpoints_of(self, job_id: JobId) -> Sequence[Checkpoint]:
        found = self.list(Checkpoint, "checkpoints_of_job", (job_id,))
        return [one for one in found if one.removed_at is None]

    def spent(self, day: str | None, agent: str | None, schedule: str | None) -> Used:
        return spent(self, day, agent, schedule)

    def set_aside(self, *, besides: JobId, agent: str | None, schedule: str | None) -> Used:
        ((cost, tokens),) = self.values("set_aside", besides, agent, schedule)
        return Used(spend=int(str(cost)), tokens=int(str(tokens)))

    def used_below(self, job_id: JobId, *, besides: JobId) -> Used:
        return used_below(self, job_id, besides)

    def next_item_number(self) -> int:
        return self.number("last_item_number") + 1

    def pending_items(self, job_id: JobId) -> Sequence[InboxItem]:
        return self.list(InboxItem, "pending_items_of_job", (job_id,))

    def pending_failures(self, agent: str, schedule: str) -> Sequence[InboxItem]:
        return self.list(InboxItem, "pending_failures", (agent, schedule))

    def answers_of(self, item: ItemId) -> Sequence[InboxAnswer]:
        return self.list(InboxAnswer, "answers_of_item", (item,))

    def next_notification_number(self) -> int:
        return self.number("last_notification_number") + 1

    def notify_targets(self) -> Sequence[TargetState]:
        return self.list(TargetState, "list_notify_targets", ())

    def due_notifications(self, target: str, at: datetime, limit: int) -> Sequence[Notification]:
        return self.list(Notification, "due_notifications", (target, utc_text(at), limit))

    def active_push_subscriptions(self) -> Sequence[PushSubscription]:
        return self.list(PushSubscription, "active_push_subscriptions", ())

    def unsent_notifications(self, target: str) -> Sequence[Notification]:
        return self.list(Notification, "unsent_notifications", (target,))

    def next_conversation_number(self) -> int:
        return self._last(Conversation, "last_conversation_number") + 1

    def next_chat_message_number(self) -> int:
        return self._last(ChatMessage, "last_chat_message_number") + 1

    def next_chat_turn_number(self) -> int:
        return self._last(ChatTurn, "last_chat_turn_number") + 1

    def next_post_number(self) -> int:
        return self._last(OutboxPost, "last_post_number") + 1

    def _last(self, kind: type, query: str) -> int:
        return self.kept.last_number(kind, partial(self.number, query))

    def waiting_chat_messages(self, id: ConversationId, limit: int) -> Sequence[ChatMessage]:
        return self.list(ChatMessage, "waiting_chat_messages", (id, limit))

    def active_messaging_session(
        self, conversation: Conversation, user_id: str
    ) -> MessagingSession | None:
        one = conversation
        place = (one.agent, one.platform.value, one.channel_id, one.thread_id or "", user_id)
        return self.find(MessagingSession, "active_messaging_session", *place)

    def active_messaging_sessions(self, id: ConversationId) -> Sequence[MessagingSession]:
        return self.list(MessagingSession, "active_messaging_sessions", (id,))

    def first_open_post(self, id: ConversationId) -> OutboxPost | None:
        return self.find(OutboxPost, "first_open_post", id)

    def next_workspace_number(self) -> int:
        return self.number("last_workspace_number") + 1

    def open_jobs_in_workspace(self, workspace_id: str) -> Sequence[Job]:
        return self.list(Job, "open_jobs_of_workspace", (workspace_id,))

    def run_nodes(self, run_id: RunId) -> RunNodes:
        known = self.kept.run_nodes(run_id)
        if known is None:
            known = RunNodes()
            for node in self.list(WorkflowNode, "nodes_of_run", (run_id,)):
                is_group = node.kind is NodeKind.GROUP
                known.put(
                    node, items_in(self.get(WorkflowNodeTexts, node.id)) if is_group else None
                )
            self.kept.put_run(run_id, known)
        return known

    def run_with_dedupe_key(self, key: str) -> WorkflowRun | None:
        return self.find(WorkflowRun, "run_by_dedupe_key", key)

    def open_runs_of_key(self, key: str, limit: int) -> Sequence[WorkflowRun]:
        return self.list(WorkflowRun, "open_runs_of_key", (key, limit))

    def open_runs_of_schedule(
        self, workflow: str, schedule: str, limit: int
    ) -> Sequence[WorkflowRun]:
        return self.list(WorkflowRun, "open_runs_of_schedule", (workflow, schedule, limit))

    def queued_runs_of_key(self, key: str, limit: int) -> Sequence[WorkflowRun]:
        return self.list(WorkflowRun, "queued_runs_of_key", (key, limit))

    def waiting_jobs_in_run(self, run_id: RunId, at: datetime, limit: int) -> Sequence[Job]:
        return self.list(Job, "waiting_jobs_in_run", (run_id, utc_text(at), limit))

    def events_of_run(self, run_id: RunId) -> Sequence[WorkflowEvent]:
        return self.list(WorkflowEvent, "events_of_run", (run_id,))

    def executions_of(self, job_id: JobId) -> Sequence[Execution]:
        return self.list(Execution, "executions_of_job", (job_id,))

    def used_in_run(self, run_id: RunId, *, besides: JobId) -> Used:
        return used_in_run(self, run_id, besides)

    def next_run_number(self) -> int:
        return self.kept.last_number(WorkflowRun, partial(self.number, "last_run_number")) + 1

    def _job_found(self, query: str, *values: str) -> Job | None:
        """The job whose id the named query gives; mostly one that is remembered."""
        found = self.values(query, *values)
        return self.get(Job, str(found[0][0])) if found else None
