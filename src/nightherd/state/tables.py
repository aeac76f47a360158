"""Which row lives in which table. A new kind of row is a struct in `model/`, a migration, and one line in `TABLES`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from nightherd.model.access.browser_session import BrowserSession
from nightherd.model.access.visit import Visit
from nightherd.model.agents.state import AgentState
from nightherd.model.chat.bot import ChatBot
from nightherd.model.chat.conversation import Conversation, MessagingSession
from nightherd.model.chat.message import ChatMessage, ChatMessageTexts, ChatTurn
from nightherd.model.chat.post import OutboxPost, PostTexts
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.inbox.item import InboxAnswer, InboxItem, InboxTexts
from nightherd.model.inbox.token import AnswerLink, Token
from nightherd.model.limits.login import LoginLimit
from nightherd.model.limits.spending import Reservation, Spending
from nightherd.model.notifications.notification import (
    Notification,
    NotificationTexts,
    NotifyCursor,
    TargetState,
)
from nightherd.model.push.subscription import PushSubscription
from nightherd.model.schedules.schedule import ScheduleOverride, ScheduleState, Slot
from nightherd.model.sessions.session import Session
from nightherd.model.webhooks import Delivery
from nightherd.model.work.item import WorkItem
from nightherd.model.work.source import SourceState
from nightherd.model.workflows.rows import (
    PinnedWorkflow,
    WorkflowContext,
    WorkflowEvent,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowOverride,
    WorkflowRun,
    WorkflowScratch,
)
from nightherd.model.workspaces.workspace import Workspace
from nightherd.state.table import JOB_TABLES, Table, table_for

RowT = TypeVar("RowT", bound=msgspec.Struct)

TABLES: Mapping[type[msgspec.Struct], str] = {
    Session: "sessions",
    **JOB_TABLES,
    Checkpoint: "checkpoints",
    AgentState: "agents",
    ScheduleState: "schedules",
    ScheduleOverride: "schedule_overrides",
    Slot: "slots",
    Delivery: "deliveries",
    Spending: "spending",
    Reservation: "reservations",
    LoginLimit: "login_limits",
    InboxItem: "inbox_items",
    InboxTexts: "inbox_texts",
    InboxAnswer: "inbox_answers",
    Token: "tokens",
    AnswerLink: "answer_links",
    BrowserSession: "browser_sessions",
    Visit: "visits",
    NotifyCursor: "notify_cursors",
    TargetState: "notify_targets",
    Notification: "notifications",
    NotificationTexts: "notification_texts",
    PushSubscription: "push_subscriptions",
    Workspace: "workspaces",
    PinnedWorkflow: "workflow_definitions",
    WorkflowRun: "workflow_runs",
    WorkflowContext: "workflow_contexts",
    WorkflowScratch: "workflow_scratch",
    WorkflowNode: "workflow_nodes",
    WorkflowNodeTexts: "workflow_node_texts",
    WorkflowEvent: "workflow_events",
    WorkflowOverride: "workflow_overrides",
    ChatBot: "chat_bots",
    Conversation: "chat_conversations",
    MessagingSession: "messaging_sessions",
    ChatMessage: "chat_messages",
    ChatMessageTexts: "chat_message_texts",
    ChatTurn: "chat_turns",
    OutboxPost: "chat_posts",
    PostTexts: "chat_post_texts",
    WorkItem: "work_items",
    SourceState: "work_sources",
}
"""The table of every kind of row. A row may only refer to rows of tables above its own."""

PASSING: Mapping[str, frozenset[str]] = {"workers": frozenset({"deadline", "heartbeat_at"})}
"""Columns that change without a line in the ledger: what it gives again may be older."""

PLACES: Mapping[type, int] = {kind: place for place, kind in enumerate(TABLES)}


def table_of(row_type: type[RowT]) -> Table[RowT]:
    """Return the table of one kind of row."""
    return table_for(row_type, TABLES[row_type])


def in_table_order(rows: Iterable[Any]) -> list[Any]:
    """`rows` so that none comes before one it may refer to; rows of one table keep their order."""
    return sorted(rows, key=lambda row: PLACES[type(row)])
