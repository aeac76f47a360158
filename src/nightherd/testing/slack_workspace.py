"""A Slack workspace in memory: people, channels, messages and files. `slack_api` serves it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nightherd.ports import Clock
from nightherd.testing.contracts.open_chat import Posted

BOT_TOKEN = "xoxb-loopback-bot-token"  # noqa: S105 (it opens nothing)
APP_TOKEN = "xapp-loopback-app-token"  # noqa: S105
SIGNING_SECRET = "loopback-signing-secret"  # noqa: S105
TEAM = "T0LOOPBACK"
APP = "A0LOOPBACK"
BOT_USER = "U0BOT"
BOT = "B0BOT"
CHANNEL = "C0GENERAL"

KINDS = {"C": "channel", "G": "group", "D": "im", "M": "mpim"}
"""What kind of conversation an id stands for here, by its first letter."""


class SlackFile(msgspec.Struct, kw_only=True):
    """A file."""

    id: str
    name: str
    media_type: str
    size: int
    content: bytes = b""
    is_shared: bool = False


class SlackMessage(msgspec.Struct, kw_only=True):
    """A message, of a person or of the bot."""

    channel: str
    ts: str
    text: str
    user: str
    thread_ts: str | None = None
    subtype: str | None = None
    bot_id: str | None = None
    blocks: Sequence[Mapping[str, Any]] = ()
    metadata: Mapping[str, Any] | None = None
    files: tuple[str, ...] = ()
    reactions: set[str] = msgspec.field(default_factory=set)
    """Of the bot."""

    @property
    def is_in_thread(self) -> bool:
        """Whether it is shown in a thread only."""
        is_reply = self.thread_ts not in (None, self.ts)
        return is_reply and self.subtype != "thread_broadcast"

    @property
    def buttons(self) -> list[Mapping[str, Any]]:
        """The buttons below it."""
        rows = [block for block in self.blocks if block.get("type") == "actions"]
        return [one for row in rows for one in row["elements"]]


class SlackWorkspace:
    """One workspace with one app. It may be read and changed at any time; `lock` keeps changes together."""

    def __init__(self, clock: Clock, *, user_id: str = "U0ADA", user_name: str = "Ada") -> None:
        self.lock = threading.RLock()
        self.user_id = user_id
        self.user_name = user_name
        self.names = {user_id: user_name, BOT_USER: "nightherd"}
        """People by id, the bot among them."""
        self.bot_users = {BOT_USER}
        """Those of them that are no people."""
        self.channels = {CHANNEL: "general"}
        """Names of channels by id; a message to another one makes it known."""
        self.closed_channels: set[str] = set()
        """Channels that the bot is not in."""
        self.messages: list[SlackMessage] = []
        self.files: dict[str, SlackFile] = {}
        self.whispers: list[tuple[str, str]] = []
        """What was shown to one person alone: their id, and the text."""
        self.typed: list[tuple[str, str]] = []
        """Channels and threads in which the bot has shown that it writes."""
        self._clock = clock
        self._last = 0
        self._count = 0

    def next_ts(self) -> str:
        """Return a new `ts`, later than all others."""
        now = int(self._clock.now().timestamp() * 1_000_000)
        self._last = max(now, self._last + 1)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06}"

    def next_id(self, letter: str) -> str:
        """Return a new id of a file, a trigger or an envelope."""
        self._count += 1
        return f"{letter}{self._count:08}"

    def kind(self, channel: str) -> str:
        """Return what kind of conversation it is: channel, group, im or mpim."""
        return KINDS.get(channel[:1], "channel")

    def find(self, channel: str, ts: str) -> SlackMessage | None:
        """Return a message."""
        known = (one for one in self.messages if (one.channel, one.ts) == (channel, ts))
        return next(known, None)

    def message(self, ts: str) -> SlackMessage:
        """Return the message with that `ts`, wherever it is."""
        return next(one for one in self.messages if one.ts == ts)

    def add(self, message: SlackMessage) -> SlackMessage:
        """Add a message, and the channel it is in."""
        self.channels.setdefault(message.channel, message.channel.lower())
        self.messages.append(message)
        return message

    def new_file(self, name: str, content: bytes, media_type: str = "text/plain") -> SlackFile:
        """Add a file of a person."""
        id = self.next_id("F")
        file = SlackFile(
            id=id, name=name, media_type=media_type, size=len(content), content=content
        )
        self.files[id] = file
        return file

    def posted(self, channel: str, thread: str | None = None) -> list[Posted]:
        """Return what the bot has posted there, oldest first."""
        return [
            Posted(
                id=one.ts,
                text=one.text,
                buttons=tuple(button["text"]["text"] for button in one.buttons),
                files=tuple(self.files[id].name for id in one.files),
                reactions=tuple(sorted(one.reactions)),
            )
            for one in self.messages
            if one.bot_id == BOT and one.channel == channel and one.thread_ts == thread
        ]

    def shown(self, message: SlackMessage, base: str, *, with_metadata: bool) -> dict[str, Any]:
        """Return a message as Slack's histories and events have it. Files are below `base`."""
        data: dict[str, Any] = {
            "type": "message",
            "ts": message.ts,
            "user": message.user,
            "team": TEAM,
            "text": message.text,
        }
        if message.subtype is not None:
            data["subtype"] = message.subtype
        if message.bot_id is not None:
            data["bot_id"], data["app_id"] = message.bot_id, APP
        if message.thread_ts is not None:
            data["thread_ts"] = message.thread_ts
        if message.blocks:
            data["blocks"] = list(message.blocks)
        if message.metadata is not None and with_metadata:
            data["metadata"] = dict(message.metadata)
        if message.files:
            data["files"] = [self.shown_file(self.files[id], base) for id in message.files]
        if message.reactions:
            data["reactions"] = [
                {"name": name, "users": [BOT_USER], "count": 1}
                for name in sorted(message.reactions)
            ]
        return data

    def shown_file(self, file: SlackFile, base: str) -> dict[str, Any]:
        """Return a file as Slack shows it."""
        url = f"{base}/files-pri/{TEAM}-{file.id}/{file.name}"
        return {
            "id": file.id,
            "name": file.name,
            "title": file.name,
            "mimetype": file.media_type,
            "mode": "hosted",
            "size": file.size,
            "url_private": url,
            "url_private_download": url,
        }

    def replies(self, channel: str, thread: str) -> list[SlackMessage]:
        """Return a thread, its first message too, oldest first."""
        return [
            one
            for one in self.messages
            if one.channel == channel and thread in (one.ts, one.thread_ts)
        ]

    def in_channel(self, channel: str) -> list[SlackMessage]:
        """Return what is shown in a channel itself, newest first."""
        shown = [one for one in self.messages if one.channel == channel and not one.is_in_thread]
        return shown[::-1]


def order(ts: str) -> tuple[int, int]:
    """Return what messages are sorted by."""
    seconds, _, micro = ts.partition(".")
    return int(seconds or 0), int(micro or 0)
