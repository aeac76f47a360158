"""What people say and do on Discord, as values of ours."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from mimetypes import guess_type
from typing import Any

import discord
import msgspec

from nightherd.model.chat.commands import BY_NAME
from nightherd.model.chat.incoming import ButtonPress, ChatCommand, IncomingFile, IncomingMessage
from nightherd.model.chat.platform import BotId, ChatPlace
from nightherd.model.chat.text.discord import MentionNames, from_discord

MOST_NAMES = 5_000
ASKS = "?"
"""What the id of a button begins with that opens a window."""
SPOKEN = frozenset({discord.MessageType.default, discord.MessageType.reply})
UNKNOWN_TYPE = "application/octet-stream"


class ChannelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel is."""

    guild_id: str | None = None
    parent_id: str | None = None
    """The channel that a thread belongs to."""

    @property
    def is_direct(self) -> bool:
        """Whether it is a conversation with one person."""
        return self.guild_id is None


class Names:
    """What people are called, as it was seen last. Those who were not seen for long are forgotten."""

    def __init__(self) -> None:
        self._names: OrderedDict[int, str] = OrderedDict()

    def see(self, user: discord.User | discord.Member) -> str:
        """Return what a person is called: as a member of the server if that is known. Bots have one name."""
        if user.bot:
            return user.name
        if isinstance(user, discord.Member) or user.id not in self._names:
            self._names[user.id] = user.display_name
        self._names.move_to_end(user.id)
        while len(self._names) > MOST_NAMES:
            self._names.popitem(last=False)
        return self._names[user.id]

    def known(self, user_id: str) -> str | None:
        """Return what a person is called who was seen."""
        return self._names.get(int(user_id)) if user_id.isdecimal() else None


class Incoming:
    """Understands what comes in for one bot."""

    def __init__(self, bot: BotId, names: Names) -> None:
        self._bot = bot
        self._names = names

    def message(
        self, message: discord.Message, facts: ChannelFacts, me: discord.ClientUser
    ) -> IncomingMessage | None:
        """Return a message of a person; None for what bots and Discord itself said."""
        author = message.author
        if author.bot or message.webhook_id is not None or message.type not in SPOKEN:
            return None
        own_roles = _own_roles(message.guild)
        is_mention = any(user.id == me.id for user in message.mentions)
        return IncomingMessage(
            bot=self._bot,
            place=ChatPlace(channel_id=str(message.channel.id)),
            message_id=str(message.id),
            sent_at=message.created_at,
            user_id=str(author.id),
            user_name=self._names.see(author),
            text=self._text(message, frozenset({str(me.id), *own_roles})),
            is_direct=facts.is_direct,
            is_mention=is_mention or not own_roles.isdisjoint(map(str, message.raw_role_mentions)),
            guild_id=facts.guild_id,
            parent_channel_id=facts.parent_id,
            files=tuple(incoming_file(one) for one in _attachments(message)),
        )

    def press(
        self, interaction: discord.Interaction, custom_id: str, comment: str | None = None
    ) -> ButtonPress | None:
        """Return a press of a button; None if Discord does not say of which message."""
        if interaction.message is None or interaction.channel_id is None:
            return None
        return ButtonPress(
            bot=self._bot,
            place=ChatPlace(channel_id=str(interaction.channel_id)),
            message_id=str(interaction.message.id),
            user_id=str(interaction.user.id),
            user_name=self._names.see(interaction.user),
            button=custom_id.removeprefix(ASKS),
            comment=comment,
        )

    def command(self, interaction: discord.Interaction, facts: ChannelFacts) -> ChatCommand | None:
        """Return a slash command; None for one that is not ours."""
        data: Mapping[str, Any] = interaction.data or {}
        name = str(data.get("name", ""))
        if name not in BY_NAME or interaction.channel_id is None:
            return None
        values = [str(one.get("value", "")) for one in data.get("options", ())]
        return ChatCommand(
            bot=self._bot,
            place=ChatPlace(channel_id=str(interaction.channel_id)),
            user_id=str(interaction.user.id),
            user_name=self._names.see(interaction.user),
            name=name,
            argument=values[0] if values else "",
            is_direct=facts.is_direct,
            guild_id=facts.guild_id,
            parent_channel_id=facts.parent_id,
            command_id=str(interaction.id),
        )

    def _text(self, message: discord.Message, own: frozenset[str]) -> str:
        guild = message.guild
        names = MentionNames(
            bot=own,
            users={str(one.id): self._names.see(one) for one in message.mentions},
            roles={str(one.id): one.name for one in message.role_mentions},
            channels={} if guild is None else _channel_names(message, guild),
        )
        texts = [message.content, *(one.content for one in message.message_snapshots)]
        return "\n\n".join(text for one in texts if (text := from_discord(one, names)))


def channel_facts(channel: Any) -> ChannelFacts | None:
    """Return what a channel is; None if discord.py does not know."""
    match channel:
        case discord.DMChannel() | discord.GroupChannel():
            return ChannelFacts()
        case discord.Thread():
            return ChannelFacts(guild_id=str(channel.guild.id), parent_id=str(channel.parent_id))
        case discord.abc.GuildChannel():
            return ChannelFacts(guild_id=str(channel.guild.id))
        case _:
            return None


def incoming_file(attachment: discord.Attachment) -> IncomingFile:
    """Return a file that was sent along."""
    guessed = guess_type(attachment.filename)[0]
    return IncomingFile(
        id=str(attachment.id),
        name=attachment.filename,
        media_type=attachment.content_type or guessed or UNKNOWN_TYPE,
        size=attachment.size,
        url=attachment.url,
        is_voice=attachment.is_voice_message(),
    )


def written_comment(data: Mapping[str, Any]) -> str | None:
    """Return what a person wrote into a window; None if nothing."""
    for component in data.get("components", ()):
        for field in (component.get("component") or {}, *component.get("components", ())):
            value = str(field.get("value") or "").strip()
            if value:
                return value
    return None


def _attachments(message: discord.Message) -> Iterator[discord.Attachment]:
    yield from message.attachments
    for forwarded in message.message_snapshots:
        yield from forwarded.attachments


def _own_roles(guild: discord.Guild | None) -> frozenset[str]:
    role = None if guild is None else guild.self_role
    return frozenset() if role is None else frozenset({str(role.id)})


def _channel_names(message: discord.Message, guild: discord.Guild) -> Mapping[str, str]:
    channels = (guild.get_channel_or_thread(id) for id in message.raw_channel_mentions)
    return {str(one.id): one.name for one in channels if one is not None}
