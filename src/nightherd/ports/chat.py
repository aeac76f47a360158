"""Chat platforms: what a connection of one bot does, and what it hands on.

An adapter (`triggers/chat`) implements `ChatConnection` for its platform. The engine gives it a `ChatReceiver`:
what came in is durable once a method of that has returned, and only then may the platform be told so.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:  # only names
    from collections.abc import Mapping, Sequence

    from nightherd.model.chat.incoming import (
        ButtonPress,
        ChatCommand,
        IncomingFile,
        IncomingMessage,
    )
    from nightherd.model.chat.platform import ChatPlace


class Button(msgspec.Struct, frozen=True, kw_only=True):
    """A button below a message."""

    id: str
    """At most 99 characters; comes back as `ButtonPress.button`."""
    label: str
    """At most 75 characters."""
    is_primary: bool = False
    is_dangerous: bool = False
    asks_comment: bool = False
    """Whether it opens a window with a text field before it counts."""


class ChatPost(msgspec.Struct, frozen=True, kw_only=True):
    """One message to send, or what a sent one is to become."""

    place: ChatPlace
    text: str
    """As the platform writes it (`model/chat/text`): Slack's mrkdwn, Discord's markdown. Pings nobody by itself."""
    nonce: str
    """At most 25 characters, different for every message: by it a message that was sent already is recognised."""
    buttons: Sequence[Button] = ()
    reply_to: str | None = None
    """The message that it answers, where the platform shows that."""


class ChatUpload(msgspec.Struct, frozen=True, kw_only=True):
    """One file to send."""

    place: ChatPlace
    path: str
    name: str
    nonce: str
    text: str = ""


class PostResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one attempt to send, edit or upload."""

    message_id: str | None = None
    """What the platform calls it; None when it was not taken."""
    error: str | None = None
    """Why it was not taken, without anything secret."""
    is_permanent: bool = False
    """Whether the same would be refused again: no such channel, not allowed, message deleted."""
    is_uncertain: bool = False
    """Whether it may have been taken all the same: the answer did not arrive."""
    retry_after: timedelta | None = None
    """How long the platform wants to be left alone, where it says so."""


class ConnectionState(msgspec.Struct, frozen=True, kw_only=True):
    """How a connection is doing."""

    is_connected: bool
    error: str | None = None
    """Why not, without anything secret."""
    bot_name: str | None = None
    """What the bot is called on the platform, once that is known."""
    is_fresh: bool = False
    """Whether messages may have been missed: true after every connect that did not resume the last one."""
    places: tuple[ChatPlace, ...] = ()
    """After a fresh connect: where messages may have been missed beside the channels that the settings list."""


class ChatReceiver(Protocol):
    """Takes what comes in from one connection."""

    async def message(self, message: IncomingMessage) -> None:
        """Take a message; once this returns it is recorded, or known already, or nobody's business."""

    async def press(self, press: ButtonPress) -> str | None:
        """Take a press of a button; returns what to say to that person alone, in markdown."""

    async def command(self, command: ChatCommand) -> str:
        """Carry out a command; returns what to say to that person alone, in markdown."""

    async def state(self, state: ConnectionState) -> None:
        """Take how the connection is doing. After a fresh connect it calls `history` to fetch what was missed."""


class ChatConnection(Protocol):
    """One bot on one platform. Everything it sends is sent once by it; retries are the outbox's."""

    async def run(self, receiver: ChatReceiver) -> None:
        """Connect, and stay connected with growing pauses until cancelled.

        `ChatRefusedError` when the platform refuses the bot for good: there is no point in trying again.
        """

    async def history(
        self, place: ChatPlace, after: str | None, limit: int
    ) -> Sequence[IncomingMessage]:
        """Return messages of people in a place, oldest first: those after the message `after`, else the latest."""

    async def post(self, post: ChatPost) -> PostResult:
        """Send a message. The same nonce within minutes sends nothing again, where the platform can do that."""

    async def edit(self, message_id: str, post: ChatPost) -> PostResult:
        """Replace the text and the buttons of a message of ours."""

    async def delete(self, place: ChatPlace, message_id: str) -> PostResult:
        """Remove a message of ours."""

    async def find_post(self, place: ChatPlace, nonce: str) -> str | None:
        """Return the id of the message of ours with that nonce among the latest ones; None if it is not there."""

    async def upload(self, upload: ChatUpload) -> PostResult:
        """Send a file."""

    async def download(self, file: IncomingFile, target: str, limit: int) -> None:
        """Fetch a file that was sent along into a new file. `NightherdError` above `limit` bytes, or when it fails."""

    async def react(
        self, place: ChatPlace, message_id: str, emoji: str, *, is_on: bool
    ) -> PostResult:
        """Add or remove a reaction of ours: an emoji as a character."""

    async def typing(self, place: ChatPlace) -> None:
        """Show for some seconds that an answer is being written, where the platform has that."""

    async def people(self, user_ids: Sequence[str]) -> Mapping[str, str]:
        """Return what the people are called, by id; those that are not known are left out."""


class RequestAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the sender of a request is answered."""

    status: int
    text: str = ""
    media_type: str = "text/plain"


@runtime_checkable
class TakesRequests(Protocol):
    """A connection that its platform can reach by requests to an address of ours."""

    async def take_request(self, headers: Mapping[str, str], body: bytes) -> RequestAnswer:
        """Take a request; `headers` by lower-case name. Without a valid signature it has no effect."""


class Transcriber(Protocol):
    """Turns voice notes into text."""

    async def transcribe(self, path: str, media_type: str) -> str:
        """Return what is said in the file. `NightherdError` when that cannot be found out."""
