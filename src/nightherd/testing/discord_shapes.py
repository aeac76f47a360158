"""Objects as Discord's API v10 writes them: users, servers, channels, threads, messages, interactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

Json = dict[str, Any]

EPOCH = datetime(2015, 1, 1, tzinfo=UTC)
TIME_BITS = 22
JOINED = "2026-01-01T00:00:00+00:00"
TEXT_CHANNEL, DIRECT_CHANNEL, PUBLIC_THREAD, PRIVATE_THREAD = 0, 1, 11, 12
THREADS = frozenset({PUBLIC_THREAD, PRIVATE_THREAD})
SLASH, COMPONENT, MODAL = 2, 3, 5
"""Kinds of interactions."""
VOICE_FLAG = 1 << 13
ATTACHMENT_LIMIT = 10 * 1024 * 1024
PERMISSIONS = str((1 << 50) - 1)


def snowflake_at(moment: datetime, number: int) -> int:
    """Return an id that says when it was made."""
    return ((moment - EPOCH) // timedelta(milliseconds=1) << TIME_BITS) + number


def said_at(id: str) -> str:
    """Return when something was made, from its id."""
    return (EPOCH + timedelta(milliseconds=int(id) >> TIME_BITS)).isoformat()


def user_shape(id: str, name: str, *, is_bot: bool = False) -> Json:
    """A user. People have a display name of their own, bots only one name."""
    return {
        "id": id,
        "username": name if is_bot else name.lower(),
        "discriminator": "0000" if is_bot else "0",
        "global_name": None if is_bot else name,
        "avatar": None,
        "bot": is_bot,
        "public_flags": 0,
    }


def member_shape(user: Json | None = None, nick: str | None = None) -> Json:
    """A member of the server; without the user where messages have that beside it."""
    member: Json = {
        "nick": nick,
        "roles": [],
        "joined_at": JOINED,
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "flags": 0,
        "avatar": None,
    }
    return member if user is None else {**member, "user": user}


def role_shape(id: str, name: str, *, bot_id: str | None = None) -> Json:
    """A role; that of a bot names it."""
    return {
        "id": id,
        "name": name,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "position": 0 if bot_id is None else 1,
        "permissions": PERMISSIONS,
        "managed": bot_id is not None,
        "mentionable": True,
        "flags": 0,
        **({} if bot_id is None else {"tags": {"bot_id": bot_id}}),
    }


def channel_shape(id: str, name: str, guild_id: str) -> Json:
    """A text channel."""
    return {
        "id": id,
        "type": TEXT_CHANNEL,
        "guild_id": guild_id,
        "name": name,
        "position": 0,
        "permission_overwrites": [],
        "topic": None,
        "nsfw": False,
        "last_message_id": None,
        "rate_limit_per_user": 0,
        "parent_id": None,
        "flags": 0,
    }


def thread_shape(id: str, name: str, parent: Json, owner_id: str) -> Json:
    """A public thread of a channel."""
    return {
        "id": id,
        "type": PUBLIC_THREAD,
        "guild_id": parent["guild_id"],
        "parent_id": parent["id"],
        "name": name,
        "owner_id": owner_id,
        "last_message_id": None,
        "message_count": 0,
        "member_count": 1,
        "total_message_sent": 0,
        "rate_limit_per_user": 0,
        "flags": 0,
        "thread_metadata": {
            "archived": False,
            "auto_archive_duration": 1440,
            "archive_timestamp": said_at(id),
            "create_timestamp": said_at(id),
            "locked": False,
        },
    }


def direct_shape(id: str, user: Json) -> Json:
    """The conversation of a bot with one person."""
    return {
        "id": id,
        "type": DIRECT_CHANNEL,
        "last_message_id": None,
        "recipients": [user],
        "flags": 0,
    }


def guild_shape(
    id: str, owner_id: str, roles: Sequence[Json], channels: Sequence[Json], bot: Json
) -> Json:
    """A server as GUILD_CREATE shows it to a bot."""
    return {
        "id": id,
        "name": "Loopback",
        "icon": None,
        "splash": None,
        "owner_id": owner_id,
        "unavailable": False,
        "joined_at": JOINED,
        "large": False,
        "member_count": 2,
        "members": [member_shape(bot)],
        "roles": list(roles),
        "channels": [one for one in channels if one["type"] not in THREADS],
        "threads": [one for one in channels if one["type"] in THREADS],
        "emojis": [],
        "stickers": [],
        "features": [],
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "soundboard_sounds": [],
        "afk_channel_id": None,
        "afk_timeout": 300,
        "application_id": None,
        "default_message_notifications": 1,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "nsfw": False,
        "premium_tier": 0,
        "premium_progress_bar_enabled": False,
        "preferred_locale": "en-US",
        "rules_channel_id": None,
        "public_updates_channel_id": None,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "verification_level": 0,
        "vanity_url_code": None,
        "description": None,
        "banner": None,
    }


def message_shape(
    id: str, channel: Json, author: Json, content: str, more: Mapping[str, Any]
) -> Json:
    """A message, as the REST API shows it."""
    return {
        "id": id,
        "channel_id": channel["id"],
        "type": 0,
        "author": author,
        "content": content,
        "timestamp": said_at(id),
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "components": [],
        "pinned": False,
        "flags": 0,
        **more,
    }


def forwarded_shape(id: str, content: str) -> Json:
    """What a message shows that was forwarded."""
    return {
        "type": 0,
        "content": content,
        "timestamp": said_at(id),
        "edited_timestamp": None,
        "flags": 0,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "components": [],
    }


def application_shape(bot: Json, owner: Json) -> Json:
    """The application that a bot belongs to; its id is the bot's."""
    return {
        "id": bot["id"],
        "name": bot["username"],
        "description": "",
        "icon": None,
        "bot_public": False,
        "bot_require_code_grant": False,
        "owner": owner,
        "team": None,
        "verify_key": "0" * 64,
        "flags": 1 << 19,
    }


def interaction_shape(
    kind: int, id: str, token: str, bot: Json, channel: Json, user: Json, data: Json
) -> Json:
    """What a person did with the bot: a slash command, a button, a window that was filled in."""
    guild_id = channel.get("guild_id")
    who: Json = {"user": user}
    if guild_id is not None:
        member = {**member_shape(user), "permissions": PERMISSIONS}
        guild = {"id": guild_id, "locale": "en-US", "features": []}
        who = {"guild_id": guild_id, "guild": guild, "member": member}
    return {
        "id": id,
        "application_id": bot["id"],
        "type": kind,
        "token": token,
        "version": 1,
        "channel": channel,
        "channel_id": channel["id"],
        "app_permissions": PERMISSIONS,
        "locale": "en-US",
        "entitlements": [],
        "authorizing_integration_owners": {"0": guild_id or "0"},
        "context": 0 if guild_id is not None else 1,
        "attachment_size_limit": ATTACHMENT_LIMIT,
        "data": data,
        **who,
    }
