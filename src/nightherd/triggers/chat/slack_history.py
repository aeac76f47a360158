"""What people said in a place on Slack, oldest first, fetched page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from nightherd.errors import NightherdError
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.platform import BotId, ChatPlace
from nightherd.triggers.chat.slack_client import SlackClient
from nightherd.triggers.chat.slack_events import Me, incoming_message, is_spoken
from nightherd.triggers.chat.slack_names import PATIENCE_S, SlackNames

MOST_PAGES = 100
MOST_KEPT = 5_000
"""Messages that are kept of a long absence: the oldest of them, which are wanted first."""


class SlackHistory:
    """Reads histories. Slack gives those of channels newest first: what is left of a long one is kept for the next call."""

    def __init__(self, client: SlackClient, names: SlackNames, bot: BotId) -> None:
        self._client = client
        self._names = names
        self._bot = bot
        self.me: Me | None = None
        self._rest: tuple[ChatPlace, str, Sequence[Mapping[str, Any]]] | None = None

    async def read(
        self, place: ChatPlace, after: str | None, limit: int
    ) -> Sequence[IncomingMessage]:
        """Return messages of people: those after `after`, else the latest."""
        me = self.me
        if me is None:
            raise NightherdError("the history cannot be read: the bot is not connected yet")
        rest, self._rest = self._rest, None
        if rest is not None and rest[:2] == (place, after):
            events = rest[2]
        else:
            events = await self._fetch(place, after, limit, me)
        wanted = events[:limit] if after is not None else events[-limit:]
        if after is not None and len(events) > len(wanted):
            self._rest = (place, str(wanted[-1]["ts"]), events[limit:])
        return [await self._message(event, place, me) for event in wanted]

    async def _fetch(
        self, place: ChatPlace, after: str | None, limit: int, me: Me
    ) -> Sequence[Mapping[str, Any]]:
        is_thread = place.thread_id is not None
        pages = self._client.pages(
            "conversations.replies" if is_thread else "conversations.history",
            channel=place.channel_id,
            ts=place.thread_id,
            oldest=after,
        )
        kept: deque[Mapping[str, Any]] = deque(maxlen=MOST_KEPT)
        number = 0
        async for page in pages:
            # Slack gives the first message of a thread with every page, whatever was asked for.
            said = (one for one in page if is_spoken(one, me) and _is_after(one, after))
            kept.extend(said)
            number += 1
            has_latest = after is None and not is_thread and len(kept) >= limit
            if has_latest or number >= MOST_PAGES:
                break
        unique = {str(one["ts"]): one for one in kept}
        with anyio.move_on_after(PATIENCE_S):
            await self._names.people({str(one["user"]) for one in unique.values()})
        of_people = (ts for ts, one in unique.items() if not self._names.is_bot(str(one["user"])))
        return [unique[ts] for ts in sorted(of_people, key=_order)]

    async def _message(self, event: Mapping[str, Any], place: ChatPlace, me: Me) -> IncomingMessage:
        people, channels = await self._names.of_message(event)
        return incoming_message(
            event,
            channel=place.channel_id,
            bot=self._bot,
            me=me,
            people=people,
            channels=channels,
        )


def _is_after(event: Mapping[str, Any], after: str | None) -> bool:
    return after is None or _order(str(event["ts"])) > _order(after)


def _order(ts: str) -> tuple[int, str]:
    seconds, _, rest = ts.partition(".")
    return (int(seconds) if seconds.isdecimal() else 0, rest)
