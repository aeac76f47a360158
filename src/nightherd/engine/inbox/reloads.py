"""Held reloads: a changed fleet file that gives agents more is one item of the inbox for as long as it waits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from nightherd.model.change import Change
from nightherd.model.inbox.changes import AskPerson, WithdrawItem
from nightherd.model.inbox.item import (
    TITLE_LIMIT,
    Asked,
    InboxItem,
    InboxQuery,
    InboxTexts,
    ItemId,
    ItemKind,
    ItemStatus,
    Verdict,
    item_id,
)
from nightherd.model.text import shorten
from nightherd.ports import InboxReader

MOST = 100
"""Items about fleet files that are looked at; there is one for each file."""


class HeldReload(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet file gives agents that no person has accepted; nothing when `changes` is empty."""

    subject: str
    """The fleet file, by its path from the state directory."""
    key: str = ""
    changes: tuple[str, ...] = ()

    @property
    def item_id(self) -> ItemId:
        """The item that asks about it."""
        return item_id(f"reload:{self.subject}:{self.key}")


def is_accepted(held: HeldReload, reader: InboxReader) -> bool:
    """Whether a person accepted exactly this in the inbox."""
    item = reader.find_item(held.item_id)
    return item is not None and item.verdict is Verdict.ACCEPT and item.hash == held.key


def changes_for(held: HeldReload, reader: InboxReader, at: datetime) -> Sequence[Change]:
    """Return what brings the inbox up to date: asks about what is held, and about nothing else of that file."""
    query = InboxQuery(kind=ItemKind.RELOAD, limit=MOST)
    mine = [one for one in reader.list_items(query) if one.subject == held.subject]
    asked = held.item_id if held.changes else None
    changes: list[Change] = [WithdrawItem(item_id=one.id, at=at) for one in mine if one.id != asked]
    if asked is not None and reader.find_item(asked) is None:
        changes.append(AskPerson(asked=(_asked(held, at),)))
    return changes


def _asked(held: HeldReload, at: datetime) -> Asked:
    title = f"{held.subject.rpartition('/')[2]} gives agents more: {'; '.join(held.changes)}"
    item = InboxItem(
        id=held.item_id,
        kind=ItemKind.RELOAD,
        status=ItemStatus.PENDING,
        created_at=at,
        subject=held.subject,
        title=shorten(" ".join(title.split()), TITLE_LIMIT),
        dedupe_key=f"reload:{held.subject}:{held.key}",
        hash=held.key,
    )
    body = {"file": held.subject, "changes": "\n".join(held.changes)}
    return Asked(item=item, texts=InboxTexts(item_id=item.id, body=body))
