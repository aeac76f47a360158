"""Quiet sessions: people who said nothing for too long take no part in a conversation any more."""

from __future__ import annotations

from nightherd.engine.chat.context import ChatContext
from nightherd.model.chat.changes import EndMessagingSessions

PAGE = 500


async def end_quiet_sessions(context: ChatContext) -> int:
    """End the sessions with the bot's agent that were quiet for longer than its settings say; returns how many."""
    expires_after = context.settings.session.max_idle
    if expires_after is None:
        return 0
    at = context.fleet.clock.now()
    before, ended = at - expires_after, 0
    while True:
        ids = tuple(
            context.fleet.reader.quiet_messaging_sessions(context.settings.agent, before, PAGE)
        )
        if not ids:
            return ended
        await context.fleet.state.apply([EndMessagingSessions(ids=ids, before=before, at=at)])
        ended += len(ids)
