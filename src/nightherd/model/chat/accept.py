"""Accepting a message: whether it is for the bot, whether the person may, and what becomes of its files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from nightherd.model.chat.commands import ParsedCommand, parse_message
from nightherd.model.chat.files import NO_FILES, SortedFiles, refusal_text, sort_files
from nightherd.model.chat.incoming import ChatCommand, IncomingMessage
from nightherd.model.chat.settings import BotSettings, ChannelMode, ChannelSettings

Spoken = IncomingMessage | ChatCommand
"""What has a place and a person."""


class Decision(StrEnum):
    """What becomes of a message."""

    TAKE = "take"
    """It waits for a turn, or joins the one that runs."""
    COMMAND = "command"
    """It is a command, and no turn gets it."""
    REFUSE = "refuse"
    """It is for the bot and not answered: recorded as dropped, with the reason, and the person is told."""
    IGNORE = "ignore"
    """It is not the bot's business, or the person may not talk to it: nothing is said."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the place and the person beside the message itself."""

    other_bots: frozenset[str] = frozenset()
    """What the fleet's other bots are called on the platform."""
    takes_part: bool = False
    """Whether the bot was spoken to in this place before, and the conversation is not over."""
    sent_in_hour: int = 0
    """Messages of the person to the bot in the last hour, without this one."""
    can_transcribe: bool = False
    """Whether voice notes can be turned into text."""
    since: datetime | None = None
    """What was said before is not answered."""


NOTHING_KNOWN = Surroundings()


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one message."""

    decision: Decision
    reason: str = ""
    """Why it is not taken: for the log and for its row."""
    reply: str | None = None
    """What the person is told at once, in markdown; also with a message that is taken, about its files."""
    command: ParsedCommand | None = None
    files: SortedFiles = NO_FILES


def accept(
    message: IncomingMessage, settings: BotSettings, known: Surroundings = NOTHING_KNOWN
) -> Acceptance:
    """Decide about a message."""
    if known.since is not None and message.sent_at < known.since:
        return _ignored("it is older than the bot")
    reason = why_not_admitted(message, settings) or why_not_addressed(message, settings, known)
    if reason is not None:
        return _ignored(reason)
    command = None if message.files else parse_message(message.text, settings.platform)
    if command is not None:
        return Acceptance(decision=Decision.COMMAND, command=command)
    return _within_limit(message, settings, known) or _with_files(message, settings, known)


def why_not_admitted(spoken: Spoken, settings: BotSettings) -> str | None:
    """Return why the person may not talk to the bot there; None if they may."""
    if not settings.users.admits(spoken.user_id):
        return "the person is not admitted by chat.users"
    if spoken.is_direct:
        return None if _direct_modes(spoken, settings) else _why_not_direct(settings)
    channel = channel_settings(spoken, settings)
    if channel is None:
        return "the channel is not listed"
    if not channel.users.admits(spoken.user_id):
        return "the person is not admitted in the channel"
    return None


def why_not_addressed(
    message: IncomingMessage, settings: BotSettings, known: Surroundings = NOTHING_KNOWN
) -> str | None:
    """Return why a message of an admitted person is not for the bot; None if it is."""
    if not message.text.strip() and not message.files and not message.is_mention:
        return "there is nothing in it"
    reasons = [
        _why_not_in_mode(mode, message, known) for mode in listening_modes(message, settings)
    ]
    return None if None in reasons else next(iter(reasons), "the channel is not listed")


def listening_modes(spoken: Spoken, settings: BotSettings) -> tuple[ChannelMode, ...]:
    """Return how the bot listens there; one mode that fits is enough."""
    if spoken.is_direct:
        return _direct_modes(spoken, settings)
    channel = channel_settings(spoken, settings)
    return () if channel is None else (channel.mode,)


def channel_settings(spoken: Spoken, settings: BotSettings) -> ChannelSettings | None:
    """Return the rules of a channel: its own, those of the channel that a thread is in, or the server's."""
    ids = (spoken.place.channel_id, spoken.parent_channel_id)
    for id in ids:
        for channel in settings.channels:
            if channel.id == id and channel.guild_id in (None, spoken.guild_id):
                return channel
    mode = settings.guild_modes.get(spoken.guild_id or "")
    return None if mode is None else ChannelSettings(id=spoken.place.channel_id, mode=mode)


def context_count(spoken: Spoken, settings: BotSettings) -> int:
    """Return how many earlier messages of the place a new session is shown; none of a direct conversation."""
    channel = None if spoken.is_direct else channel_settings(spoken, settings)
    return 0 if channel is None else channel.context_messages


def names_a_bot(text: str, names: Iterable[str]) -> bool:
    """Whether the text speaks to one of those: `@Name`, in any case."""
    spellings = sorted((re.escape(name) for name in names if name), key=len, reverse=True)
    if not spellings:
        return False
    return re.search(rf"(?<!\w)@(?:{'|'.join(spellings)})(?!\w)", text, re.IGNORECASE) is not None


def message_limit(spoken: Spoken, settings: BotSettings) -> int | None:
    """Return how many messages of an hour the person may send, by the strictest rule that holds there."""
    channel = None if spoken.is_direct else channel_settings(spoken, settings)
    rules = (settings.users, *(() if channel is None else (channel.users,)))
    limits = (one.max_messages_per_hour for one in rules)
    return min((limit for limit in limits if limit is not None), default=None)


def _direct_modes(spoken: Spoken, settings: BotSettings) -> tuple[ChannelMode, ...]:
    return tuple(
        one.mode
        for one in settings.direct
        if one.enabled
        and spoken.user_id not in one.blocklist
        and (not one.allowlist or spoken.user_id in one.allowlist)
    )


def _why_not_direct(settings: BotSettings) -> str:
    if not any(one.enabled for one in settings.direct):
        return "direct messages are switched off"
    return "the person is not admitted by chat.dm"


def _why_not_in_mode(
    mode: ChannelMode, message: IncomingMessage, known: Surroundings
) -> str | None:
    if mode is ChannelMode.ALL or message.is_mention:
        return None
    is_in_thread = message.place.thread_id is not None or message.parent_channel_id is not None
    if mode is ChannelMode.MENTION and not (is_in_thread and known.takes_part):
        return "it does not name the bot"
    if names_a_bot(message.text, known.other_bots):
        return "it names another bot"
    return None


def _within_limit(
    message: IncomingMessage, settings: BotSettings, known: Surroundings
) -> Acceptance | None:
    """The refusal of a person who said too much; the first message above the limit is answered, the others not."""
    limit = message_limit(message, settings)
    if limit is None or known.sent_in_hour < limit:
        return None
    reply = (
        f"You have sent {limit} messages in the last hour, and I may not answer more. "
        "Please try again later."
    )
    return Acceptance(
        decision=Decision.REFUSE,
        reason=f"the person sent more than {limit} messages in an hour",
        reply=reply if known.sent_in_hour == limit else None,
    )


def _with_files(message: IncomingMessage, settings: BotSettings, known: Surroundings) -> Acceptance:
    files = sort_files(message.files, settings.attachments, can_transcribe=known.can_transcribe)
    reply = refusal_text(files.refused) if files.refused else None
    taken = Acceptance(decision=Decision.TAKE, reply=reply, files=files)
    if files.refused and files.is_empty and not message.text.strip():
        reason = "none of its files is fetched"
        return replace(taken, decision=Decision.REFUSE, reason=reason)
    return taken


def _ignored(reason: str) -> Acceptance:
    return Acceptance(decision=Decision.IGNORE, reason=reason)
