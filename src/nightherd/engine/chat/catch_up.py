"""Catching up: after a fresh connect, what was said meanwhile is fetched and taken like any other message.

A place is behind until its history was looked at. What is said there meanwhile waits for that, so that it is
taken in order. When the history cannot be had, messages are taken without it, and the cursor of the place
stays: the next fresh connect fetches all of it again, and what is known already changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from enum import StrEnum

import anyio

from nightherd.engine.chat.context import ChatContext, Signal
from nightherd.engine.chat.intake import Intake, conversation_at
from nightherd.engine.chat.log import write_log
from nightherd.errors import NightherdError, message_of
from nightherd.model.chat.changes import SeeMessage
from nightherd.model.chat.conversation import ConversationId, conversation_id
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.log import LogLevel

PAGE = 100
MOST_PAGES = 20
"""Pages of one place that are fetched at once: what is older than that in a longer absence stays unanswered."""
MOST_PLACES = 200
LIVELY = timedelta(days=7)
"""Places beside the listed channels are looked at if something happened there within this time."""
TRIES = 3
PAUSE_S = 1.0


class Standing(StrEnum):
    """How far a place is, in this connection."""

    BEHIND = "behind"
    UNKNOWN = "unknown"
    """Its history could not be had."""


class CatchUp:
    """Which places are behind, and how they are brought up to date."""

    def __init__(self, context: ChatContext, intake: Intake, *, pause_s: float = PAUSE_S) -> None:
        self._context = context
        self._intake = intake
        self._pause_s = pause_s
        self._standing: dict[ConversationId, Standing] = {}
        self._places: dict[ConversationId, ChatPlace] = {}
        self._turns: dict[ConversationId, _Turn] = {}
        self._is_behind = Signal()
        self.known: Sequence[ChatPlace] = ()
        """Places that count like the listed channels, as the connection names them."""

    def listed(self) -> list[SeeMessage]:
        """Return the changes that record the listed channels: what is said there from now on is answered."""
        context = self._context
        at = context.fleet.clock.now()
        return [
            SeeMessage(conversation=conversation_at(place, context.settings, at), message_id=None)
            for place in self._listed_places()
        ]

    def begin(self) -> None:
        """A fresh connect: every place may have missed something."""
        context = self._context
        now = context.fleet.clock.now()
        lively = context.fleet.reader.active_conversations(
            context.settings.bot, now - LIVELY, MOST_PLACES
        )
        places = [*self._listed_places(), *(one.place for one in lively)]
        self._places = {conversation_id(context.settings.bot, one): one for one in places}
        self._standing = dict.fromkeys(self._places, Standing.BEHIND)
        self._is_behind.set()

    async def run(self) -> None:
        """Bring the places up to date, one after the other, until cancelled."""
        while True:
            await self._is_behind.wait()
            for id in tuple(self._places):
                if self._standing.get(id) is Standing.BEHIND:
                    async with self.turn_at(self._places[id]):
                        await self._look(id)

    @asynccontextmanager
    async def in_order(self, place: ChatPlace) -> AsyncIterator[bool]:
        """Wait for earlier messages of the place, and for those that were missed; whether its cursor may move."""
        id = conversation_id(self._context.settings.bot, place)
        async with self.turn_at(place):
            await self._look(id)
            yield id not in self._standing

    @asynccontextmanager
    async def turn_at(self, place: ChatPlace) -> AsyncIterator[None]:
        """One message of a place at a time, in the order of asking."""
        id = conversation_id(self._context.settings.bot, place)
        turn = self._turns.setdefault(id, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                self._turns.pop(id, None)

    def _listed_places(self) -> list[ChatPlace]:
        listed = [ChatPlace(channel_id=one.id) for one in self._context.settings.channels]
        return list(dict.fromkeys((*listed, *self.known[:MOST_PLACES])))

    async def _look(self, id: ConversationId) -> None:
        """Fetch what was missed in a place that is behind."""
        places = self._places
        if self._standing.get(id) is not Standing.BEHIND:
            return
        problem: str | None = None
        for attempt in range(TRIES):
            if attempt:
                await anyio.sleep(self._pause_s * attempt)
            try:
                await self._fetch(id, places[id])
                problem = None
                break
            except NightherdError as error:
                problem = message_of(error)
        if places is not self._places:
            return  # another connect since then: it is behind again
        if problem is None:
            del self._standing[id]
            return
        self._standing[id] = Standing.UNKNOWN
        write_log(
            self._context,
            "history_unknown",
            f"what was said in {places[id].channel_id} meanwhile is not known: {problem}",
            level=LogLevel.WARNING,
            conversation=id,
        )

    async def _fetch(self, id: ConversationId, place: ChatPlace) -> None:
        context = self._context
        known = context.fleet.reader.find_conversation(id)
        after = known.seen_message_id if known is not None else None
        # Nothing was ever looked at there: then it counts what was said since the place was listed.
        since = known.created_at if known is not None else context.fleet.clock.now()
        first = after
        for _ in range(MOST_PAGES):
            page = await context.connection.history(place, after, PAGE)
            for message in page:
                await self._intake.take(message, since=since if first is None else None)
            if not page:
                return
            after = page[-1].message_id
            seen = SeeMessage(
                conversation=conversation_at(place, context.settings, since), message_id=after
            )
            await context.fleet.state.apply([seen])
            if first is None:
                return
        write_log(
            context,
            "history_too_long",
            f"more than {PAGE * MOST_PAGES} messages were missed in {place.channel_id}; "
            "the latest of them are not answered",
            level=LogLevel.WARNING,
            conversation=id,
        )


class _Turn:
    """Who is at it in one place, and how many wait."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.waiting = 0
