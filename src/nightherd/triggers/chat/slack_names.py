"""What people and channels are called on Slack, remembered for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import anyio

from nightherd.model.chat.text.slack_incoming import channels_in, people_in
from nightherd.triggers.chat.slack_client import SlackClient
from nightherd.triggers.chat.slack_events import text_of
from nightherd.triggers.chat.slack_turns import Turns

FRESH_S = 3_600.0
"""How long a name is believed."""
FAILED_S = 60.0
"""How long it is not asked again for a name that could not be had."""
REMEMBERED = 10_000
PATIENCE_S = 3.0
"""A message does not wait longer than this for names: ids are shown then."""


class SlackNames:
    """Names by id. What cannot be found out is left out."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._turns = Turns()
        self._known: OrderedDict[str, tuple[str | None, float]] = OrderedDict()
        self._bots: set[str] = set()

    async def people(self, ids: Iterable[str]) -> Mapping[str, str]:
        """Return what people are called."""
        return await self._names(ids, self._person)

    def is_bot(self, id: str) -> bool:
        """Whether Slack has said, with its name, that it is a bot: not every event of a bot says so itself."""
        return id in self._bots

    async def of_message(self, event: Mapping[str, Any]) -> tuple[Mapping[str, str], Mapping[str, str]]:  # fmt: skip
        """Return the names of the people and the channels that a message has, the writer's among them."""
        text = text_of(event)
        with anyio.move_on_after(PATIENCE_S):
            people = await self.people({*people_in(text), str(event.get("user"))})
            return people, await self._names(channels_in(text), self._channel)
        return {}, {}

    async def _names(
        self, ids: Iterable[str], find: Callable[[str], Awaitable[str | None]]
    ) -> Mapping[str, str]:
        names = {id: await self._name(id, find) for id in ids}
        return {id: name for id, name in names.items() if name is not None}

    async def _name(self, id: str, find: Callable[[str], Awaitable[str | None]]) -> str | None:
        """Return a name. Those who want the same at the same time ask once."""
        name, until = self._known.get(id, (None, 0.0))
        if until >= anyio.current_time():
            return name
        async with self._turns.turn(id):
            name, until = self._known.get(id, (None, 0.0))
            if until >= anyio.current_time():
                return name
            name = await find(id) or name
            kept_s = FAILED_S if name is None else FRESH_S
            self._known[id] = (name, anyio.current_time() + kept_s)
            self._known.move_to_end(id)
            while len(self._known) > REMEMBERED:
                self._bots.discard(self._known.popitem(last=False)[0])
            return name

    async def _person(self, id: str) -> str | None:
        answer = await self._client.call("users.info", user=id)
        user = answer.data.get("user") if answer.is_ok else None
        if not isinstance(user, Mapping):
            return None
        if user.get("is_bot") is True:
            self._bots.add(id)
        profile = user.get("profile") or {}
        names = (
            profile.get("display_name"),
            profile.get("real_name"),
            user.get("real_name"),
            user.get("name"),
        )
        return next((str(name).strip() for name in names if name and str(name).strip()), None)

    async def _channel(self, id: str) -> str | None:
        answer = await self._client.call("conversations.info", channel=id)
        channel = answer.data.get("channel") if answer.is_ok else None
        return str(channel["name"]) if isinstance(channel, Mapping) and channel.get("name") else None  # fmt: skip
