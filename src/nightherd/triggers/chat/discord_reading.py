"""What a bot reads on Discord: channels, their history, people, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import anyio
import discord

from nightherd.errors import NightherdError
from nightherd.model.chat.incoming import IncomingFile, IncomingMessage
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.settings import BotSettings
from nightherd.triggers.chat.discord_errors import FAILURES, UNREADABLE, reason
from nightherd.triggers.chat.discord_incoming import (
    ChannelFacts,
    Incoming,
    Names,
    channel_facts,
)
from nightherd.triggers.chat.discord_sending import TIMEOUT_S, Sending

PAGE = 100
MOST_READ = 5_000
"""Messages that are read at once, those of bots among them."""
MOST_FACTS = 1_000
CHUNK = 64 * 1024
DOWNLOAD_S = 300.0
OK = 200


class Reading:
    """Reads for one bot, through the client that it has at the moment."""

    def __init__(self, sending: Sending, incoming: Incoming, names: Names) -> None:
        self._sending = sending
        self._incoming = incoming
        self._names = names
        self._facts: dict[int, ChannelFacts] = {}

    async def facts(self, channel: Any) -> ChannelFacts:
        """Return what a channel is; it is asked for where discord.py does not know."""
        known = channel_facts(channel) or self._facts.get(channel.id)
        if known is not None:
            return known
        try:
            known = channel_facts(await self._fetch_channel(channel.id))
        except (*FAILURES, NightherdError):
            known = None
        if known is None:
            guild_id = getattr(channel, "guild_id", None)
            return ChannelFacts(guild_id=None if guild_id is None else str(guild_id))
        if len(self._facts) >= MOST_FACTS:
            self._facts.clear()
        self._facts[channel.id] = known
        return known

    async def history(
        self, place: ChatPlace, after: str | None, limit: int
    ) -> Sequence[IncomingMessage]:
        """Return messages of people in a place, oldest first: those after the message `after`, else the latest."""
        if not place.channel_id.isdecimal() or not (after or "0").isdecimal():
            raise NightherdError("the history cannot be read: that is no id of Discord's")
        try:
            with anyio.fail_after(TIMEOUT_S):
                return await self._history(int(place.channel_id), after, limit)
        except FAILURES as error:
            self._sending.on_failure(error)
            raise NightherdError(f"the history cannot be read: {reason(error)}") from None
        except UNREADABLE as error:
            raise NightherdError(f"the history cannot be read: {reason(error)}") from error

    async def _history(
        self, channel_id: int, after: str | None, limit: int
    ) -> Sequence[IncomingMessage]:
        client = self._client()
        channel: Any = client.get_channel(channel_id) or await self._fetch_channel(channel_id)
        facts = channel_facts(channel)
        if facts is None or not isinstance(channel, discord.abc.Messageable):
            return ()  # a forum, whose threads have messages, or a category
        found: list[IncomingMessage] = []
        if after is None:
            async for message in channel.history(limit=PAGE):
                self._add(found, message, facts, client)
                if len(found) >= limit:
                    break
            return found[::-1]
        begin = discord.Object(int(after))
        async for message in channel.history(limit=MOST_READ, after=begin, oldest_first=True):
            self._add(found, message, facts, client)
            if len(found) >= limit:
                break
        return found

    def _add(
        self,
        found: list[IncomingMessage],
        message: discord.Message,
        facts: ChannelFacts,
        client: discord.Client,
    ) -> None:
        if client.user is not None:
            incoming = self._incoming.message(message, facts, client.user)
            if incoming is not None:
                found.append(incoming)

    async def people(self, user_ids: Sequence[str]) -> Mapping[str, str]:
        """Return what the people are called, by id; those that are not known are left out."""
        names = {}
        for id in dict.fromkeys(user_ids):
            name = self._names.known(id) or await self._fetch_name(id)
            if name is not None:
                names[id] = name
        return names

    async def _fetch_name(self, user_id: str) -> str | None:
        if not user_id.isdecimal():
            return None
        try:
            with anyio.fail_after(TIMEOUT_S):
                return self._names.see(await self._client().fetch_user(int(user_id)))
        except (*FAILURES, NightherdError):
            return None

    async def download(self, file: IncomingFile, target: str, limit: int) -> None:
        """Fetch a file into a new file. `NightherdError` above `limit` bytes, or when it fails."""
        if file.size > limit:
            raise NightherdError(f"{file.name} has more than {limit} bytes")
        if not file.url.startswith("https://"):
            raise NightherdError(f"{file.name} has no address of Discord's")
        client = self._client()
        try:
            with anyio.fail_after(DOWNLOAD_S):
                async with (
                    aiohttp.ClientSession(
                        connector=client.http.connector, connector_owner=False
                    ) as session,
                    session.get(file.url, allow_redirects=False) as response,
                ):
                    if response.status != OK:
                        message = (
                            f"{file.name} cannot be fetched: Discord answered {response.status}"
                        )
                        raise NightherdError(message)
                    await _write(response, file.name, target, limit)
        except FAILURES as error:
            is_ours = isinstance(error, OSError) and error.filename is not None
            why = str(error.strerror) if is_ours and isinstance(error, OSError) else reason(error)
            raise NightherdError(f"{file.name} cannot be fetched: {why}") from None

    def _client(self) -> discord.Client:
        client = self._sending.client
        if client is None:
            raise NightherdError("Discord: not connected")
        return client

    async def _fetch_channel(self, id: int) -> Any:
        return await self._client().fetch_channel(id)


def channels_of_servers(client: discord.Client, settings: BotSettings) -> tuple[ChatPlace, ...]:
    """Return the channels and threads of servers that the bot listens in as a whole, the liveliest first."""
    channels: list[discord.abc.MessageableChannel] = []
    for guild in client.guilds:
        if str(guild.id) in settings.guild_modes:
            rooms = (guild.text_channels, guild.voice_channels, guild.stage_channels, guild.threads)
            channels += [one for room in rooms for one in room if _is_readable(one)]
    channels.sort(key=lambda one: getattr(one, "last_message_id", None) or 0, reverse=True)
    return tuple(ChatPlace(channel_id=str(one.id)) for one in channels)


def _is_readable(channel: discord.abc.GuildChannel | discord.Thread) -> bool:
    try:
        can = channel.permissions_for(channel.guild.me)
    except discord.ClientException:
        return False  # a thread whose channel the bot cannot see
    return can.read_messages and can.read_message_history


async def _write(response: aiohttp.ClientResponse, name: str, target: str, limit: int) -> None:
    """Write a response into a new file; nothing is left of one that is too long or ends early."""
    path = anyio.Path(target)
    is_whole = False
    size = 0
    async with await anyio.open_file(target, "xb") as written:
        try:
            async for chunk in response.content.iter_chunked(CHUNK):
                size += len(chunk)
                if size > limit:
                    raise NightherdError(f"{name} has more than {limit} bytes")
                await written.write(chunk)
            is_whole = True
        finally:
            if not is_whole:
                with anyio.CancelScope(shield=True):
                    await path.unlink(missing_ok=True)
