"""Expiry: items that nobody answered in time."""

from __future__ import annotations

from nightherd.engine.contexts import Stores
from nightherd.model.change import Applied, Change
from nightherd.model.inbox.changes import ExpireItem

AT_ONCE = 50


async def expire_items(context: Stores) -> int:
    """Expire every item whose time has passed and return how many did. However many workers look, each expires once."""
    at = context.clock.now()
    due = context.reader.items_to_expire(at, AT_ONCE)
    if not due:
        return 0
    changes: list[Change] = [ExpireItem(item_id=item.id, at=at) for item in due]
    answers = await context.state.apply(changes)
    return sum(isinstance(answer, Applied) for answer in answers)
