"""What a loopback Discord knows: people, bots, channels, messages. The same lock guards all of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import msgspec

from nightherd.ports import Clock
from nightherd.testing.discord_shapes import (
    DIRECT_CHANNEL,
    VOICE_FLAG,
    Json,
    channel_shape,
    direct_shape,
    forwarded_shape,
    guild_shape,
    member_shape,
    message_shape,
    role_shape,
    snowflake_at,
    thread_shape,
    user_shape,
)

LONGEST_MESSAGE = 2_000
LONGEST_NONCE = 25
LONGEST_BUTTON_ID = 100
LONGEST_LABEL = 80
PAGE = 100

Emit = Callable[["BotAccount", str, Json], None]
"""Sends an event to a bot."""


class DiscordRefusal(Exception):
    """What the API answers with instead of doing what it was asked."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class BotAccount(msgspec.Struct, kw_only=True, eq=False):
    """A bot: what it logs in with, and what it told Discord about itself."""

    token: str
    user: Json
    role_id: str
    is_revoked: bool = False
    may_read_content: bool = True
    """Whether Message Content Intent is switched on in the developer portal."""
    commands: dict[str | None, list[Json]] = msgspec.field(default_factory=dict)
    """Its slash commands by server; those of None are everywhere."""
    presence: Json | None = None
    logins: int = 0
    """How often it has asked who it is, which is the first thing that a client does."""
    identified: int = 0
    """How many sessions it has begun."""
    resumed: int = 0
    heartbeats: int = 0

    @property
    def id(self) -> str:
        """Its user id, and that of its application."""
        return str(self.user["id"])

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.user["username"])


class DiscordWorld:
    """One server with one channel to begin with. Use it while holding `lock`."""

    def __init__(self, clock: Clock, emit: Emit) -> None:
        self.lock = threading.RLock()
        self.news = threading.Condition(self.lock)
        """Notified after everything that a bot does."""
        self.clock = clock
        self._emit = emit
        self._numbers = count(1)
        self.bots: dict[str, BotAccount] = {}
        self.users: dict[str, Json] = {}
        self.channels: dict[str, Json] = {}
        self.owners: dict[str, BotAccount] = {}
        """The bots of direct conversations, by channel."""
        self.messages: dict[str, dict[str, Json]] = {}
        self.reactions: dict[str, dict[str, set[str]]] = {}
        """Who reacted to a message, by emoji."""
        self.files: dict[str, bytes] = {}
        self.typed: list[str] = []
        self.guild_id = self.new_id()
        self.roles = [role_shape(self.guild_id, "@everyone")]
        self.owner = self.add_user("Owner")

    def new_id(self) -> str:
        """Return an id that is larger than every earlier one."""
        return str(snowflake_at(self.clock.now(), next(self._numbers)))

    def add_user(self, name: str, *, is_bot: bool = False) -> Json:
        """A person, or a bot of somebody else."""
        id = self.new_id()
        self.users[id] = user_shape(id, name, is_bot=is_bot)
        return self.users[id]

    def add_bot(self, name: str, token: str) -> BotAccount:
        """A bot that can log in."""
        user = self.add_user(name, is_bot=True)
        role = role_shape(self.new_id(), name, bot_id=user["id"])
        self.roles.append(role)
        self.bots[token] = BotAccount(token=token, user=user, role_id=role["id"])
        return self.bots[token]

    def add_channel(self, name: str) -> Json:
        """A text channel of the server."""
        id = self.new_id()
        self.channels[id] = channel_shape(id, name, self.guild_id)
        self.tell(id, "CHANNEL_CREATE", self.channels[id])
        return self.channels[id]

    def add_thread(self, name: str, parent_id: str, owner_id: str) -> Json:
        """A public thread of a channel."""
        id = self.new_id()
        self.channels[id] = thread_shape(id, name, self.channels[parent_id], owner_id)
        self.tell(id, "THREAD_CREATE", {**self.channels[id], "newly_created": True})
        return self.channels[id]

    def direct_channel(self, user_id: str, bot: BotAccount) -> Json:
        """The conversation of a person with a bot."""
        for id, owner in self.owners.items():
            recipients = [one["id"] for one in self.channels[id]["recipients"]]
            if owner is bot and recipients == [user_id]:
                return self.channels[id]
        id = self.new_id()
        self.channels[id] = direct_shape(id, self.users[user_id])
        self.owners[id] = bot
        return self.channels[id]

    def guild(self, bot: BotAccount) -> Json:
        """The server, as a bot sees it."""
        channels = [one for one in self.channels.values() if one["type"] != DIRECT_CHANNEL]
        return guild_shape(self.guild_id, self.owner["id"], self.roles, channels, bot.user)

    def channel(self, id: str, bot: BotAccount) -> Json:
        """A channel that the bot can see."""
        found = self.channels.get(id)
        if found is None or self.owners.get(id, bot) is not bot:
            raise DiscordRefusal(404, 10003, "Unknown Channel")
        return found

    def message(self, channel_id: str, id: str) -> Json:
        """A message that nobody deleted."""
        found = self.messages.get(channel_id, {}).get(id)
        if found is None:
            raise DiscordRefusal(404, 10008, "Unknown Message")
        return found

    def history(self, channel_id: str, query: dict[str, str]) -> list[Json]:
        """Messages as `GET /channels/ID/messages` lists them: the newest first."""
        limit = min(int(query.get("limit", "50")), PAGE)
        messages = sorted(
            self.messages.get(channel_id, {}).values(), key=lambda one: int(one["id"])
        )
        if "after" in query:
            messages = [one for one in messages if int(one["id"]) > int(query["after"])][:limit]
        elif "before" in query:
            messages = [one for one in messages if int(one["id"]) < int(query["before"])]
        return [self.shown(one) for one in messages[-limit:][::-1]]

    def shown(self, message: Json) -> Json:
        """A message with its reactions."""
        reactions = [
            {
                "emoji": {"id": None, "name": emoji},
                "count": len(who),
                "me": False,
                "burst_colors": [],
            }
            for emoji, who in self.reactions.get(message["id"], {}).items()
            if who
        ]
        return {**message, "reactions": reactions} if reactions else message

    def post(
        self,
        channel: Json,
        author: Json,
        payload: Json,
        files: Sequence[tuple[str, str, bytes]],
        *,
        is_voice: bool = False,
    ) -> Json:
        """Take a message with files (name, type, content); the same nonce again gives the message that has it."""
        forwards = payload.get("forwards")
        check_payload(payload, has_files=bool(files or forwards))
        nonce = payload.get("nonce")
        if nonce is not None and payload.get("enforce_nonce"):
            for one in self.messages.get(channel["id"], {}).values():
                if one.get("nonce") == nonce and one["author"] is author:
                    return one
        id = self.new_id()
        content = payload.get("content") or ""
        more: Json = {
            "components": payload.get("components") or [],
            "attachments": [self._keep(channel["id"], *file) for file in files],
            "flags": payload.get("flags", 0),
            **self._mentions(content, payload.get("allowed_mentions")),
        }
        if nonce is not None:
            more["nonce"] = nonce
        if payload.get("message_reference") is not None:
            reference = {"channel_id": channel["id"], **payload["message_reference"]}
            more |= {"type": 19, "message_reference": reference}
            more["mentions"] = [*more["mentions"], *payload.get("pings", [])]
        if forwards is not None:
            more["message_snapshots"] = [{"message": forwarded_shape(id, forwards)}]
        message = message_shape(id, channel, author, content, more)
        if is_voice:
            message["flags"] |= VOICE_FLAG
            message["attachments"][0] |= {"duration_secs": 1.5, "waveform": "AAAA"}
        self.messages.setdefault(channel["id"], {})[id] = message
        self.tell(channel["id"], "MESSAGE_CREATE", self.event(message))
        return message

    def edit(self, channel_id: str, id: str, author: Json, payload: Json) -> Json:
        """Change a message of the author's own."""
        message = self.message(channel_id, id)
        if message["author"] is not author:
            raise DiscordRefusal(403, 50005, "Cannot edit a message authored by another user")
        check_payload({**message, **payload}, has_files=bool(message["attachments"]))
        changed: Json = {key: payload[key] for key in ("content", "components") if key in payload}
        message.update(changed, edited_timestamp=self.clock.now().isoformat())
        self.tell(channel_id, "MESSAGE_UPDATE", self.event(message))
        return message

    def delete(self, channel_id: str, id: str) -> None:
        """Remove a message."""
        self.message(channel_id, id)
        del self.messages[channel_id][id]
        self.tell(channel_id, "MESSAGE_DELETE", {"id": id, "channel_id": channel_id})

    def event(self, message: Json) -> Json:
        """A message as the gateway shows it."""
        guild_id = self.channels[message["channel_id"]].get("guild_id")
        if guild_id is None:
            return message
        return {**message, "guild_id": guild_id, "member": member_shape()}

    def tell(self, channel_id: str, event: str, data: Json) -> None:
        """Send an event to the bots that can see the channel."""
        for bot in self.bots.values():
            if self.owners.get(channel_id, bot) is bot:
                self._emit(bot, event, data)

    def tell_bot(self, bot: BotAccount, event: str, data: Json) -> None:
        """Send an event to one bot."""
        self._emit(bot, event, data)

    def _keep(self, channel_id: str, name: str, media_type: str, content: bytes) -> Json:
        id = self.new_id()
        self.files[id] = content
        url = f"https://cdn.discordapp.com/attachments/{channel_id}/{id}/{name}?ex=1&hm=signed"
        return {
            "id": id,
            "filename": name,
            "content_type": media_type,
            "size": len(content),
            "url": url,
            "proxy_url": url,
        }

    def _mentions(self, content: str, allowed: Json | None) -> Json:
        """Who is pinged: those named in the text, unless the message says that it pings nobody."""
        kinds = ["users", "roles", "everyone"] if allowed is None else allowed.get("parse", [])
        users = [one for one in self.users.values() if f"<@{one['id']}>" in content]
        roles = [one["id"] for one in self.roles if f"<@&{one['id']}>" in content]
        return {
            "mentions": users if "users" in kinds else [],
            "mention_roles": roles if "roles" in kinds else [],
            "mention_everyone": "everyone" in kinds and "@everyone" in content,
        }


def buttons_of(message: Json) -> list[Json]:
    """The buttons below a message."""
    return [button for row in message["components"] for button in row.get("components", [])]


def check_payload(payload: Json, *, has_files: bool) -> None:
    """Refuse what Discord refuses."""
    content: Any = payload.get("content") or ""
    if not content and not has_files and not payload.get("components"):
        raise DiscordRefusal(400, 50006, "Cannot send an empty message")
    buttons = buttons_of({"components": payload.get("components") or []})
    ids = [one["custom_id"] for one in buttons]
    rows = [row.get("components", []) for row in payload.get("components") or []]
    is_wrong = (
        len(content.encode("utf-16-le")) // 2 > LONGEST_MESSAGE
        or len(str(payload.get("nonce") or "")) > LONGEST_NONCE
        or any(not 1 <= len(id) <= LONGEST_BUTTON_ID for id in ids)
        or any(not 1 <= len(one.get("label") or "") <= LONGEST_LABEL for one in buttons)
        or len(set(ids)) < len(ids)
        or any(len(row) > 5 for row in rows)
    )
    if is_wrong:
        raise DiscordRefusal(400, 50035, "Invalid Form Body")
