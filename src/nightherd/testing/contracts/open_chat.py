"""What checks of connections to chat platforms are given: a connection, and a platform that can be told to fail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec

from nightherd.model.chat.platform import ChatPlace
from nightherd.ports.chat import Button, ChatConnection, ChatPost
from nightherd.testing.recording_receiver import RecordingReceiver


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the bot, as the platform has it."""

    id: str
    text: str
    buttons: tuple[str, ...] = ()
    """Their labels."""
    files: tuple[str, ...] = ()
    """Their names."""
    reactions: tuple[str, ...] = ()
    """Of the bot, whatever the platform calls them."""


class ChatPlatform(Protocol):
    """A platform as seen by a check: a person who writes, and a server that can be told to fail.

    None of these may block: the connection runs in the same event loop.
    """

    def say(self, text: str, *, names_bot: bool = False, file: bytes | None = None) -> str:
        """A person writes in the place, with a text file perhaps; returns the message's id."""

    def press(self, message_id: str, label: str, comment: str | None = None) -> None:
        """A person presses a button of a message, and fills in the window that it opens, if there is a comment."""

    def posted(self) -> Sequence[Posted]:
        """Return what the bot has posted in the place, oldest first."""

    def reactions(self, message_id: str) -> Sequence[str]:
        """Return the bot's reactions to a message."""

    def limit_rate(self, pause: timedelta) -> None:
        """Refuse the next message of the bot: too many."""

    def refuse(self) -> None:
        """Refuse the next message of the bot for good."""

    def lose_answer(self) -> None:
        """Take the next message of the bot, and lose the connection before the answer."""

    def break_down(self) -> None:
        """Answer the next message of the bot with a server error."""

    def drop(self) -> None:
        """Cut the connections on which the platform sends events."""

    def revoke(self) -> None:
        """The bot's token is worth nothing from now on."""


class OpenChat(msgspec.Struct, frozen=True, kw_only=True):
    """A connection, not running yet, the platform it leads to, and a directory for files."""

    connection: ChatConnection
    platform: ChatPlatform
    place: ChatPlace
    """Where `platform.say` says things."""
    user_id: str
    """The person who says them."""
    user_name: str
    secrets: Sequence[str]
    """What must be in no error."""
    directory: Path
    receiver: RecordingReceiver

    def post(self, text: str, nonce: str, *, buttons: Sequence[Button] = ()) -> ChatPost:
        """A message to the place."""
        return ChatPost(place=self.place, text=text, nonce=nonce, buttons=buttons)


Check = Callable[[OpenChat], Awaitable[None]]


def chat_checks_in(names: Mapping[str, Any]) -> tuple[Check, ...]:
    """Return the checks of a module in their order; `names` are its `globals()`."""
    return tuple(check for name, check in names.items() if name.startswith("check_"))


@asynccontextmanager
async def running(chat: OpenChat) -> AsyncIterator[None]:
    """Run the connection, connected, while the context lasts."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(chat.connection.run, chat.receiver)
        await chat.receiver.until(lambda: chat.receiver.is_connected)
        yield
        tasks.cancel_scope.cancel()
