"""What comes in from a platform, as values that are the same for all of them."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from nightherd.model.chat.platform import BotId, ChatPlace
from nightherd.model.text import whole_text

StructT = TypeVar("StructT", bound=msgspec.Struct)


class IncomingFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was sent along; `ChatConnection.download` fetches it."""

    id: str
    """What the platform calls it."""
    name: str
    media_type: str
    size: int
    url: str
    """Where it is fetched from. Kept out of logs: some platforms sign it."""
    is_voice: bool = False
    """Whether it is a recorded voice note, and not a file that happens to be audio."""


class IncomingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a person, as the platform's adapter understood it.

    Adapters leave out what bots and the platform itself said, and edits of earlier messages.
    """

    bot: BotId
    place: ChatPlace
    message_id: str
    """What the platform calls it: Slack's `ts`, Discord's id. Unique for the bot and the channel."""
    sent_at: datetime
    user_id: str
    user_name: str
    """What people call the person, for the prompt and the record."""
    text: str
    """In markdown, with mentions of people and channels by name; the mention of the bot itself is taken out."""
    is_direct: bool = False
    """Whether it was written to the bot alone."""
    is_mention: bool = False
    """Whether it names the bot."""
    guild_id: str | None = None
    """The Discord server, or the Slack workspace."""
    parent_channel_id: str | None = None
    """The channel that a Discord thread belongs to: rules of the channel hold in its threads."""
    files: tuple[IncomingFile, ...] = ()


class ButtonPress(msgspec.Struct, frozen=True, kw_only=True):
    """A person pressed a button of one of our messages, and perhaps wrote a comment with it."""

    bot: BotId
    place: ChatPlace
    message_id: str
    """The message that has the button."""
    user_id: str
    user_name: str
    button: str
    """The `id` of the button."""
    comment: str | None = None
    """What the person wrote in the window that the button opened, if it opens one."""


class ChatCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command, such as `status`, from a slash command of the platform."""

    bot: BotId
    place: ChatPlace
    user_id: str
    user_name: str
    name: str
    """In lower case: `status`, `reset` ..."""
    argument: str = ""
    is_direct: bool = False
    guild_id: str | None = None
    parent_channel_id: str | None = None
    command_id: str
    """What the platform calls this use of it: the same one takes effect once."""


def storable(incoming: StructT) -> StructT:
    """Return what came in without halves of characters, which JSON can hold and no file: platforms cut texts there."""
    changed: dict[str, object] = {}
    for name in incoming.__struct_fields__:
        value = getattr(incoming, name)
        if isinstance(value, str):
            whole: object = whole_text(value)
        elif isinstance(value, tuple):
            whole = tuple(storable(one) for one in value)
        else:
            continue
        if whole != value:
            changed[name] = whole
    return replace(incoming, **changed) if changed else incoming
