"""Reading state: every question, synchronous and read-only. No event loop, nothing of writing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from nightherd.db.connection import Value
from nightherd.model.access.browser_session import BrowserSession
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
from nightherd.model.inbox.token import AnswerLink, Token
from nightherd.model.jobs.job import Execution, Job, JobStatus
from nightherd.model.limits.limits import Used
from nightherd.model.limits.login import LoginLimit
from nightherd.model.notifications.notification import (
    LEDGER,
    Notification,
    NotificationId,
    NotificationQuery,
    NotificationTexts,
    NotifyCursor,
    TargetState,
)
from nightherd.model.push.subscription import PushSubscription
from nightherd.model.sessions.filter import session_filter_of
from nightherd.model.sessions.session import Session, SessionKey, SessionMode, SessionQuery
from nightherd.model.text import utc_text
from nightherd.model.webhooks import Delivery
from nightherd.model.workspaces.workspace import Workspace, WorkspaceId, WorkspaceQuery
from nightherd.state.filtered_sessions import session_statements
from nightherd.state.job_reader import NEWEST
from nightherd.state.rows import SqliteRows
from nightherd.state.tables import TABLES
from nightherd.state.work_reader import SqliteWorkReader


class SqliteReader(SqliteWorkReader):
    """Every question about the state in `state_dir`; each answer is consistent in itself."""

    _table_names = TABLES

    def find_session(self, session_id: SessionId) -> Session | None:
        rows = self._rows()
        return rows.get(Session, session_id) if rows else None

    def list_executions(self, job_id: JobId) -> Sequence[Execution]:
        rows = self._rows()
        return rows.list(Execution, "executions_of_job", (job_id,)) if rows else ()

    def list_checkpoints(self, job_id: JobId) -> Sequence[Checkpoint]:
        rows = self._rows()
        found = rows.list(Checkpoint, "checkpoints_of_job", (job_id,)) if rows else ()
        return [one for one in found if one.removed_at is None]

    def removed_checkpoints(self, job_id: JobId) -> Sequence[Checkpoint]:
        rows = self._rows()
        found = rows.list(Checkpoint, "checkpoints_of_job", (job_id,)) if rows else ()
        return [one for one in found if one.removed_at is not None]

    def jobs_of_parent(self, job_id: JobId) -> Sequence[Job]:
        rows = self._rows()
        return rows.list(Job, "jobs_of_parent", (job_id,)) if rows else ()

    def jobs_below(self, job_id: JobId) -> Sequence[Job]:
        rows = self._rows()
        return rows.list(Job, "jobs_below", (job_id,)) if rows else ()

    def spent(self, day: str | None, agent: str | None, schedule: str | None) -> Used:
        rows = self._rows()
        return spent(rows, day, agent, schedule) if rows else Used()

    def spent_by_agent(self, day: str) -> Mapping[str, Used]:
        rows = self._rows()
        found = rows.values("spent_by_agent_on_day", day) if rows else ()
        return {str(agent): _used([(*used,)]) for agent, *used in found}

    def used_below(self, job_id: JobId) -> Used:
        rows = self._rows()
        return used_below(rows, job_id, "") if rows else Used()

    def jobs_with_checkpoints(self) -> Sequence[JobId]:
        rows = self._rows()
        return [JobId(str(id)) for (id,) in rows.values("jobs_with_checkpoints")] if rows else ()

    def list_sessions(self, query: SessionQuery) -> Sequence[Session]:
        rows = self._rows()
        if rows is None:
            return ()
        page = (query.before if query.before is not None else NEWEST, query.limit)
        if query.filter is not None:
            filter = session_filter_of(query)
            if filter is None:
                return ()
            sessions = rows.select(Session, session_statements(filter, *page))
            newest = sorted(sessions, key=lambda one: (one.created_at, one.number), reverse=True)
            return newest[: query.limit]
        agent = query.agent
        status = query.status.value if query.status is not None else None
        mode = query.mode.value if query.mode is not None else None
        if agent is not None:
            return rows.list(Session, "list_sessions_by_agent", (*page, agent, status, mode))
        if status is not None:
            return rows.list(Session, "list_sessions_by_status", (*page, status, agent, mode))
        if mode is not None:
            return rows.list(Session, "list_sessions_by_mode", (*page, mode, agent, status))
        return rows.list(Session, "list_sessions", page)

    def session_ids(self, prefix: str, limit: int) -> Sequence[SessionId]:
        rows = self._rows()
        if rows is None:
            return ()
        # Ids are ASCII, so everything with the prefix stands before the prefix and one beyond ASCII.
        values = (prefix, prefix + "\x7f", limit)
        found = [
            *rows.values("session_ids_of_prefix", *values),
            *rows.values("runtime_session_ids_of_prefix", *values),
        ]
        return list(dict.fromkeys(SessionId(str(id)) for (id,) in found))[:limit]

    def sessions_of_parent(self, session_id: SessionId) -> Sequence[Session]:
        rows = self._rows()
        return rows.list(Session, "sessions_of_parent", (session_id,)) if rows else ()

    def current_session(self, key: SessionKey) -> Session | None:
        rows = self._rows()
        return find_current_session(rows, key) if rows else None

    def sessions_to_expire(self, at: datetime, limit: int) -> Sequence[Session]:
        rows = self._rows()
        values = (utc_text(at), limit)
        return rows.list(Session, "sessions_to_expire", values) if rows else ()

    def persistent_session(self, agent: str) -> Session | None:
        rows = self._rows()
        return rows.find(Session, "persistent_session", agent) if rows else None

    def session_job_ids(self, session_id: SessionId) -> Sequence[JobId]:
        rows = self._rows()
        found = rows.values("job_ids_of_session", session_id) if rows else ()
        return [JobId(str(id)) for (id,) in found]

    def jobs_of_session(self, session_id: SessionId) -> Sequence[Job]:
        rows = self._rows()
        return rows.list(Job, "jobs_of_session", (session_id,)) if rows else ()

    def jobs_to_wake(self, at: datetime, limit: int) -> Sequence[JobId]:
        rows = self._rows()
        found = rows.values("jobs_to_wake", utc_text(at), limit) if rows else ()
        return [JobId(str(id)) for (id,) in found]

    def sessions_of_runtime(self, runtime_session_id: str) -> Sequence[Session]:
        rows = self._rows()
        values = (runtime_session_id,)
        return rows.list(Session, "sessions_by_runtime_id", values) if rows else ()

    def list_agents(self) -> Sequence[AgentState]:
        rows = self._rows()
        return rows.list(AgentState, "list_agents", ()) if rows else ()

    def find_agent(self, name: str) -> AgentState | None:
        rows = self._rows()
        return rows.get(AgentState, name) if rows else None

    def list_login_limits(self, at: datetime) -> Sequence[LoginLimit]:
        rows = self._rows()
        return rows.list(LoginLimit, "list_login_limits", (utc_text(at),)) if rows else ()

    def list_deliveries(self, endpoint: str, limit: int) -> Sequence[Delivery]:
        rows = self._rows()
        return rows.list(Delivery, "deliveries_of_endpoint", (endpoint, limit)) if rows else ()

    def has_waiting_job(self, agents: Collection[str]) -> bool:
        rows = self._rows()
        if rows is None:
            return False
        waiting = [str(agent) for (agent,) in rows.values("waiting_agents")]
        return any(agent in agents and rows.values("workable_job", agent) for agent in waiting)

    def count_open_jobs(self) -> Mapping[tuple[str, JobStatus], int]:
        rows = self._rows()
        found = rows.values("count_open_jobs") if rows else ()
        return {
            (str(agent), JobStatus(str(status))): int(str(count)) for agent, status, count in found
        }

    def jobs_to_cancel(self, worker: WorkerId) -> Sequence[JobId]:
        rows = self._rows()
        found = rows.values("jobs_to_cancel", worker) if rows else ()
        return [JobId(str(id)) for (id,) in found]

    def find_item(self, item_id: ItemId) -> InboxItem | None:
        rows = self._rows()
        return rows.get(InboxItem, item_id) if rows else None

    def find_item_texts(self, item_id: ItemId) -> InboxTexts | None:
        rows = self._rows()
        return rows.get(InboxTexts, item_id) if rows else None

    def list_items(self, query: InboxQuery) -> Sequence[InboxItem]:
        rows = self._rows()
        if rows is None:
            return ()
        before = query.before if query.before is not None else NEWEST
        kind = query.kind.value if query.kind is not None else None
        name = "list_pending_items" if query.is_pending else "list_decided_items"
        return rows.list(InboxItem, name, (before, query.limit, kind, query.agent))

    def item_ids(self, prefix: str, limit: int) -> Sequence[ItemId]:
        rows = self._rows()
        values = (prefix, prefix + "\x7f", limit)
        found = rows.values("item_ids_of_prefix", *values) if rows else ()
        return [ItemId(str(id)) for (id,) in found]

    def items_of_job(self, job_id: JobId) -> Sequence[InboxItem]:
        rows = self._rows()
        return rows.list(InboxItem, "items_of_job", (job_id,)) if rows else ()

    def list_answers(self, item_id: ItemId) -> Sequence[InboxAnswer]:
        rows = self._rows()
        return rows.list(InboxAnswer, "answers_of_item", (item_id,)) if rows else ()

    def items_to_expire(self, at: datetime, limit: int) -> Sequence[InboxItem]:
        rows = self._rows()
        values = (utc_text(at), limit)
        return rows.list(InboxItem, "items_to_expire", values) if rows else ()

    def count_pending_items(self) -> Mapping[ItemKind, int]:
        rows = self._rows()
        found = rows.values("count_pending_items") if rows else ()
        return {ItemKind(str(kind)): int(str(count)) for kind, count in found}

    def jobs_without_item(self, limit: int) -> Sequence[JobId]:
        rows = self._rows()
        return [JobId(str(id)) for (id,) in rows.values("jobs_without_item", limit)] if rows else []

    def oldest_pending_item(self) -> InboxItem | None:
        rows = self._rows()
        found = rows.list(InboxItem, "oldest_pending_item", ()) if rows else ()
        return found[0] if found else None

    def find_token(self, hash: str) -> Token | None:
        rows = self._rows()
        return rows.find(Token, "token_by_hash", hash) if rows else None

    def list_tokens(self) -> Sequence[Token]:
        rows = self._rows()
        return rows.list(Token, "list_tokens", ()) if rows else ()

    def find_link(self, hash: str) -> AnswerLink | None:
        rows = self._rows()
        return rows.get(AnswerLink, hash) if rows else None

    def find_browser_session(self, hash: str) -> BrowserSession | None:
        rows = self._rows()
        return rows.get(BrowserSession, hash) if rows else None

    def browser_sessions_of(self, person: str) -> Sequence[BrowserSession]:
        rows = self._rows()
        return rows.list(BrowserSession, "browser_sessions_of_person", (person,)) if rows else ()

    def find_notification(self, notification_id: NotificationId) -> Notification | None:
        rows = self._rows()
        return rows.get(Notification, notification_id) if rows else None

    def find_notification_texts(self, notification_id: NotificationId) -> NotificationTexts | None:
        rows = self._rows()
        return rows.get(NotificationTexts, notification_id) if rows else None

    def list_notifications(self, query: NotificationQuery) -> Sequence[Notification]:
        rows = self._rows()
        if rows is None:
            return ()
        before = query.before if query.before is not None else NEWEST
        status = query.status.value if query.status is not None else None
        page = (before, query.limit, status)
        if query.target is None:
            return rows.list(Notification, "list_notifications", page)
        return rows.list(Notification, "list_notifications_of_target", (*page, query.target))

    def list_notify_targets(self) -> Sequence[TargetState]:
        rows = self._rows()
        return rows.list(TargetState, "list_notify_targets", ()) if rows else ()

    def due_notify_targets(self, at: datetime) -> Sequence[str]:
        rows = self._rows()
        found = rows.values("due_notify_targets", utc_text(at)) if rows else ()
        return [str(name) for (name,) in found]

    def count_open_notifications(self, at: datetime) -> Mapping[str, int]:
        rows = self._rows()
        found = rows.values("count_open_notifications", utc_text(at)) if rows else ()
        return {str(target): int(str(count)) for target, count in found}

    def notified_change(self, cursor: str = LEDGER) -> int | None:
        rows = self._rows()
        found = rows.get(NotifyCursor, cursor) if rows else None
        return None if found is None else found.change

    def find_push_subscription(self, push_id: str) -> PushSubscription | None:
        rows = self._rows()
        return rows.get(PushSubscription, push_id) if rows else None

    def active_push_subscriptions(self) -> Sequence[PushSubscription]:
        rows = self._rows()
        return rows.list(PushSubscription, "active_push_subscriptions", ()) if rows else ()

    def find_workspace(self, workspace_id: str) -> Workspace | None:
        rows = self._rows()
        return rows.get(Workspace, workspace_id) if rows else None

    def list_workspaces(self, query: WorkspaceQuery) -> Sequence[Workspace]:
        rows = self._rows()
        if rows is None:
            return ()
        before = query.before if query.before is not None else NEWEST
        name = "list_all_workspaces" if query.has_removed else "list_workspaces"
        return rows.list(Workspace, name, (before, query.limit, query.agent))

    def workspace_ids(self, prefix: str, limit: int) -> Sequence[WorkspaceId]:
        rows = self._rows()
        values = (prefix, prefix + "\x7f", limit)
        found = rows.values("workspace_ids_of_prefix", *values) if rows else ()
        return [WorkspaceId(str(id)) for (id,) in found]

    def jobs_of_workspace(self, workspace_id: str, limit: int) -> Sequence[Job]:
        rows = self._rows()
        return rows.list(Job, "jobs_of_workspace", (workspace_id, limit)) if rows else ()

    def open_jobs_in_workspace(self, workspace_id: str) -> Sequence[Job]:
        rows = self._rows()
        return rows.list(Job, "open_jobs_of_workspace", (workspace_id,)) if rows else ()


def find_current_session(rows: SqliteRows, key: SessionKey) -> Session | None:
    """Return the session that a job with this key joins; none for `fresh_per_job`, which shares none."""
    if key.mode is SessionMode.FRESH_PER_JOB:
        return None
    parts = (key.agent, key.mode.value, key.channel_id or "", key.schedule or "")
    return rows.find(Session, "current_session", *parts)


def spent(rows: SqliteRows, day: str | None, agent: str | None, schedule: str | None) -> Used:
    """What was used on a day, or ever: by an agent and for a schedule, where they are named.

    What jobs of others used below an agent's is its own too.
    """
    if day is None:
        return _used(rows.values("spent_ever"))
    found = _used(rows.values("spent_on_day", day, agent, schedule))
    if agent is None:
        return found
    return found + _used(rows.values("spent_below_on_day", day, agent, schedule))


def _used(found: Sequence[tuple[Value, ...]]) -> Used:
    ((cost, turns, tokens),) = found
    return Used(spend=int(str(cost)), turns=int(str(turns)), tokens=int(str(tokens)))


def used_below(rows: SqliteRows, job_id: str, besides: str) -> Used:
    """What all jobs below a job have used and set aside, one of them left out; `spawns` counts them."""
    ((cost, turns, tokens, count),) = rows.values("used_below", job_id, besides)
    return Used(
        spend=int(str(cost)), turns=int(str(turns)), tokens=int(str(tokens)), spawns=int(str(count))
    )
