"""State in memory: questions about tokens, answer links, browser sessions and devices with pushes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nightherd.model.access.browser_session import BrowserSession
from nightherd.model.inbox.token import AnswerLink, Token
from nightherd.model.push.subscription import PushSubscription

if TYPE_CHECKING:
    from nightherd.testing.memory_state import MemoryRows


class MemoryAccessReader:
    """The part of `MemoryReader` that is about access."""

    if TYPE_CHECKING:
        _rows: MemoryRows

    def find_token(self, hash: str) -> Token | None:
        active = [one for one in self._rows.all(Token) if one.revoked_at is None]
        return next((one for one in active if one.hash == hash), None)

    def list_tokens(self) -> Sequence[Token]:
        return sorted(self._rows.all(Token), key=lambda one: one.name)

    def find_link(self, hash: str) -> AnswerLink | None:
        return self._rows.get(AnswerLink, hash)

    def find_browser_session(self, hash: str) -> BrowserSession | None:
        return self._rows.get(BrowserSession, hash)

    def browser_sessions_of(self, person: str) -> Sequence[BrowserSession]:
        sessions = [one for one in self._rows.all(BrowserSession) if one.person == person]
        is_open = [one for one in sessions if one.ended_at is None]
        return sorted(is_open, key=lambda one: (one.created_at, one.id))

    def find_push_subscription(self, push_id: str) -> PushSubscription | None:
        return self._rows.get(PushSubscription, push_id)

    def active_push_subscriptions(self) -> Sequence[PushSubscription]:
        return self._rows.active_push_subscriptions()
