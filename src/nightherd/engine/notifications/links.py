"""Answer links of a message: each answers one item once, for the person who reads the target."""

from __future__ import annotations

from nightherd.engine.notifications.context import NotifyContext
from nightherd.model.agents.agent import Fleet
from nightherd.model.inbox.item import ItemId, ItemKind
from nightherd.model.inbox.token import (
    SECRET_LENGTH,
    AnswerLink,
    MakeLink,
    link_expiry,
    secret_hash,
)
from nightherd.model.notifications.target import NotifyTarget

PATH = "/answer/"
WITHOUT = frozenset({ItemKind.LIMIT})
"""Kinds whose answer needs more than a choice: their messages show the commands alone."""


class AnswerLinks:
    """Makes the links of one message. `record` has to be done before it is sent: only hashes are kept."""

    def __init__(self, fleet: Fleet, target: NotifyTarget, context: NotifyContext) -> None:
        self._base = fleet.web.public_url if fleet.web.enabled else None
        self._approver = target.approver or target.id
        self._context = context
        self._made: list[MakeLink] = []

    def __call__(self, item_id: ItemId) -> str | None:
        """Return a new link to the item; None where there is none, or the target's reader may not answer."""
        context = self._context
        if self._base is None:
            return None
        item, texts = context.reader.find_item(item_id), context.reader.find_item_texts(item_id)
        if item is None or texts is None or not item.is_pending or item.kind in WITHOUT:
            return None
        if texts.approvers and self._approver not in texts.approvers:
            return None
        secret, now = context.random_text(SECRET_LENGTH), context.clock.now()
        link = AnswerLink(
            id=secret_hash(secret),
            item_id=item_id,
            approver=self._approver,
            created_at=now,
            expires_at=link_expiry(item, now),
        )
        self._made.append(MakeLink(link=link))
        return f"{self._base}{PATH}{secret}"

    async def record(self) -> None:
        """Make the links work. One whose item was decided meanwhile stays without effect."""
        if self._made:
            await self._context.state.apply(self._made)
            self._made = []
