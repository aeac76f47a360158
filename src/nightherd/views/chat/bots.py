"""Bots of chat platforms as `status`, the API and the doctor show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

import msgspec

from nightherd.model.agents.agent import Agent
from nightherd.model.chat.bot import BotStatus, ChatBot
from nightherd.model.chat.platform import BotId
from nightherd.model.chat.settings import BotSettings
from nightherd.model.text import counted
from nightherd.views.jobs.jobs import timestamp

if TYPE_CHECKING:
    from nightherd.ports import StateReader

MOST_COUNTED = 1_000
"""Of waiting messages and failed posts: more are not counted."""
RECENT = timedelta(days=3)
"""How long `status` shows that a post was given up."""
LASTING = frozenset({BotStatus.REFUSED, BotStatus.UNAVAILABLE})
"""What stays true without a process: a person has to do something."""


class BotRow(TypedDict):
    """How a bot is doing."""

    bot: str
    agent: str
    platform: str
    name: str | None
    status: str
    since: str | None
    error: str | None
    connected_at: str | None
    waiting_messages: int
    failed_posts: int
    last_failure: str | None


class BotView(msgspec.Struct, frozen=True, kw_only=True):
    """A declared bot, and what is on record about it."""

    settings: BotSettings
    status: BotStatus
    row: ChatBot | None = None
    """As its process last wrote it; None for one that never ran."""
    waiting: int = 0
    """Messages that no turn has taken yet."""
    failed: int = 0
    """Posts of the last days that were given up."""
    last_failure: str | None = None
    """Why the newest of them was."""

    @property
    def error(self) -> str | None:
        """What is wrong with the connection; None for a bot that works, or is not running."""
        return None if self.row is None or self.is_stale else self.row.error

    @property
    def since(self) -> datetime | None:
        """Since when the status is so; None where that is not on record."""
        return None if self.row is None or self.is_stale else self.row.changed_at

    @property
    def is_stale(self) -> bool:
        """Whether the row was written by a process that ended without a word."""
        return self.row is not None and self.row.status is not self.status

    @property
    def is_in_trouble(self) -> bool:
        """Whether a person should look at it."""
        return bool(self.failed) or self.status in {*LASTING, BotStatus.DISCONNECTED}


def show_bots(
    reader: StateReader,
    declared: Mapping[str, Agent],
    running: Sequence[str] | None,
    started_at: datetime | None,
    now: datetime,
) -> list[BotView]:
    """Return every declared bot. `started_at` is when the daemon started, None without one; `running` are its agents.

    None for all. Only what the present daemon wrote about a connection counts.
    """
    rows = {row.id: row for row in reader.list_chat_bots()}

    def status_of(settings: BotSettings) -> BotStatus:
        row = rows.get(settings.bot)
        is_run = started_at is not None and (running is None or settings.agent in running)
        if row is not None and is_run and started_at is not None and row.changed_at >= started_at:
            return row.status
        if is_run:
            return BotStatus.STARTING
        return row.status if row is not None and row.status in LASTING else BotStatus.STOPPED

    views: list[BotView] = []
    for settings in (bot for agent in declared.values() for bot in agent.bots):
        failed = [
            post
            for post in reader.failed_posts(settings.bot, MOST_COUNTED)
            if now - post.wanted_at < RECENT
        ]
        views.append(
            BotView(
                settings=settings,
                status=status_of(settings),
                row=rows.get(settings.bot),
                waiting=_waiting(reader, settings.bot),
                failed=len(failed),
                last_failure=failed[0].last_error if failed else None,
            )
        )
    return views


def _waiting(reader: StateReader, bot: BotId) -> int:
    count = 0
    for conversation in reader.waiting_conversations(bot):
        count += len(reader.waiting_chat_messages(conversation, MOST_COUNTED))
        if count >= MOST_COUNTED:
            return MOST_COUNTED
    return count


def bot_row(view: BotView) -> BotRow:
    """Return a bot as plain data."""
    settings, row = view.settings, view.row
    return {
        "bot": settings.bot,
        "agent": settings.agent,
        "platform": settings.platform.value,
        "name": None if row is None else row.name,
        "status": view.status.value,
        "since": timestamp(view.since),
        "error": view.error,
        "connected_at": None if row is None else timestamp(row.connected_at),
        "waiting_messages": view.waiting,
        "failed_posts": view.failed,
        "last_failure": view.last_failure,
    }


def trouble_text(view: BotView) -> str | None:
    """Return what a person should know about a bot, as a clause; None when it does what it should."""
    parts: list[str] = []
    if view.status in {*LASTING, BotStatus.DISCONNECTED}:
        parts.append(f"{view.status}: {view.error}" if view.error else str(view.status))
    if view.failed:
        what = f"{counted(view.failed, 'post')} could not be sent"
        parts.append(f"{what}: {view.last_failure}" if view.last_failure else what)
    return "; ".join(parts) or None
