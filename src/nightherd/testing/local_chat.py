"""A chat platform in memory, and connections to it: for tests of what people say and are answered.

platform = LocalPlatform()
connection = platform.connect(bot_id(Platform.SLACK, "coder"))
platform.say("hello", names_bot=True)
platform.posted()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from nightherd.errors import ChatRefusedError, NightherdError
from nightherd.model.chat.incoming import ButtonPress, ChatCommand, IncomingFile, IncomingMessage
from nightherd.model.chat.platform import BotId, ChatPlace
from nightherd.ports.chat import (
    Button,
    ChatPost,
    ChatReceiver,
    ChatUpload,
    ConnectionState,
    PostResult,
)
from nightherd.testing.contracts.open_chat import Posted

HERE = ChatPlace(channel_id="C1")
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
BOT_NAME = "nightherd"


class _Message(msgspec.Struct, kw_only=True):
    """A message as the platform has it; `said` for one of a person."""

    id: str
    place: ChatPlace
    said: IncomingMessage | None = None
    text: str = ""
    nonce: str = ""
    buttons: tuple[Button, ...] = ()
    files: tuple[str, ...] = ()
    reactions: set[str] = msgspec.field(default_factory=set)


class LocalPlatform:
    """One bot's platform. People write and press by its methods; none of them blocks."""

    def __init__(self, *, user_id: str = "U1", user_name: str = "Ada") -> None:
        self.user_id = user_id
        self.user_name = user_name
        self.is_revoked = False
        self.typed: list[ChatPlace] = []
        """Where the bot has shown that it writes."""
        self.messages: dict[str, _Message] = {}
        self.files: dict[str, bytes] = {}
        self.names = {user_id: user_name}
        self.troubles: dict[str, timedelta] = {}
        self.events: list[IncomingMessage | ButtonPress | ChatCommand] = []
        self.drops = 0
        self.news = anyio.Event()
        self._bot: BotId | None = None

    def connect(self, bot: BotId) -> LocalConnection:
        """Return a connection of the bot."""
        self._bot = bot
        return LocalConnection(self, bot)

    def say(
        self,
        text: str,
        *,
        names_bot: bool = False,
        file: bytes | None = None,
        is_voice: bool = False,
        place: ChatPlace = HERE,
        user: str | None = None,
        is_direct: bool = False,
    ) -> str:
        """A person writes, perhaps with a file, which may be a voice note; returns the message's id."""
        user_id = user or self.user_id
        self.names.setdefault(user_id, user_id)
        id = self.next_id()
        files = () if file is None else (self._new_file(id, file, is_voice=is_voice),)
        said = IncomingMessage(
            bot=self._bot or BotId(""),
            place=place,
            message_id=id,
            sent_at=BEGINNING + timedelta(seconds=len(self.messages)),
            user_id=user_id,
            user_name=self.names[user_id],
            text=text,
            is_mention=names_bot,
            is_direct=is_direct,
            files=files,
        )
        self.messages[id] = _Message(id=id, place=place, said=said)
        self._happen(said)
        return id

    def press(
        self, message_id: str, label: str, comment: str | None = None, *, user: str | None = None
    ) -> None:
        """A person presses the button with that label."""
        message = self.messages[message_id]
        button = next(one for one in message.buttons if one.label == label)
        user_id = user or self.user_id
        press = ButtonPress(
            bot=self._bot or BotId(""),
            place=message.place,
            message_id=message_id,
            user_id=user_id,
            user_name=self.names.setdefault(user_id, user_id),
            button=button.id,
            comment=comment,
        )
        self._happen(press)

    def command(
        self, name: str, argument: str = "", *, place: ChatPlace = HERE, user: str | None = None
    ) -> None:
        """A person uses a slash command."""
        user_id = user or self.user_id
        command = ChatCommand(
            bot=self._bot or BotId(""),
            place=place,
            user_id=user_id,
            user_name=self.names.setdefault(user_id, user_id),
            name=name,
            argument=argument,
            command_id=self.next_id(),
        )
        self._happen(command)

    def posted(self, place: ChatPlace = HERE) -> Sequence[Posted]:
        """Return what the bot has posted in the place, oldest first."""
        return [
            Posted(
                id=one.id,
                text=one.text,
                buttons=tuple(button.label for button in one.buttons),
                files=one.files,
                reactions=tuple(sorted(one.reactions)),
            )
            for one in self.messages.values()
            if one.said is None and one.place == place
        ]

    def reactions(self, message_id: str) -> Sequence[str]:
        """Return the bot's reactions to a message."""
        return sorted(self.messages[message_id].reactions)

    def remove(self, message_id: str) -> None:
        """Somebody deletes a message."""
        del self.messages[message_id]

    def limit_rate(self, pause: timedelta) -> None:
        """Refuse the next message of the bot: too many."""
        self.troubles["rate"] = pause

    def refuse(self) -> None:
        """Refuse the next message of the bot for good."""
        self.troubles["refuse"] = timedelta()

    def lose_answer(self) -> None:
        """Take the next message of the bot, and lose the connection before the answer."""
        self.troubles["lose"] = timedelta()

    def break_down(self) -> None:
        """Answer the next message of the bot with a server error."""
        self.troubles["break"] = timedelta()

    def drop(self) -> None:
        """Cut the connections on which the platform sends events."""
        self.drops += 1
        self.tell()

    def revoke(self) -> None:
        """The bot's token is worth nothing from now on."""
        self.is_revoked = True
        self.tell()

    def _new_file(self, id: str, content: bytes, *, is_voice: bool) -> IncomingFile:
        self.files[id] = content
        return IncomingFile(
            id=id,
            name="voice.ogg" if is_voice else "notes.txt",
            media_type="audio/ogg" if is_voice else "text/plain",
            size=len(content),
            url=f"local:{id}",
            is_voice=is_voice,
        )

    def next_id(self) -> str:
        return f"{1_000 + len(self.messages) + len(self.events)}.{len(self.messages):06}"

    def _happen(self, event: IncomingMessage | ButtonPress | ChatCommand) -> None:
        self.events.append(event)
        self.tell()

    def tell(self) -> None:
        self.news.set()
        self.news = anyio.Event()


class LocalConnection:
    """A connection to a platform in memory."""

    def __init__(self, platform: LocalPlatform, bot: BotId) -> None:
        self._platform = platform
        self._bot = bot
        self.answers: list[str | None] = []
        """What was said to those who pressed a button or used a command."""

    async def run(self, receiver: ChatReceiver) -> None:
        """Hand on what happens from now on."""
        platform = self._platform
        place = len(platform.events)
        while True:
            if platform.is_revoked:
                raise ChatRefusedError("the token was revoked", hint="make a new one")
            drops = platform.drops
            await receiver.state(
                ConnectionState(is_connected=True, bot_name=BOT_NAME, is_fresh=True)
            )
            while platform.drops == drops and not platform.is_revoked:
                news = platform.news
                for event in platform.events[place:]:
                    place += 1
                    await self._hand_on(event, receiver)
                if platform.drops == drops and len(platform.events) == place:
                    await news.wait()
            await receiver.state(ConnectionState(is_connected=False, error="the connection is cut"))

    async def _hand_on(
        self, event: IncomingMessage | ButtonPress | ChatCommand, receiver: ChatReceiver
    ) -> None:
        try:
            match event:
                case IncomingMessage():
                    await receiver.message(event)
                case ButtonPress():
                    self.answers.append(await receiver.press(event))
                case ChatCommand():
                    self.answers.append(await receiver.command(event))
        except NightherdError:
            return  # not recorded: it is in the history

    async def history(
        self, place: ChatPlace, after: str | None, limit: int
    ) -> Sequence[IncomingMessage]:
        """Return messages of people in a place."""
        said = [
            one.said
            for one in self._platform.messages.values()
            if one.said is not None and one.place == place
        ]
        if after is None:
            return said[-limit:]
        ids = [one.message_id for one in said]
        begin = ids.index(after) + 1 if after in ids else 0
        return said[begin : begin + limit]

    async def post(self, post: ChatPost) -> PostResult:
        """Send a message."""
        return self._send(post.place, post.text, post.nonce, buttons=tuple(post.buttons))

    async def upload(self, upload: ChatUpload) -> PostResult:
        """Send a file."""
        if not await to_thread.run_sync(Path(upload.path).is_file):
            return PostResult(error="the file is gone", is_permanent=True)
        return self._send(upload.place, upload.text, upload.nonce, files=(upload.name,))

    def _send(
        self,
        place: ChatPlace,
        text: str,
        nonce: str,
        *,
        buttons: tuple[Button, ...] = (),
        files: tuple[str, ...] = (),
    ) -> PostResult:
        platform = self._platform
        failed = self._trouble()
        if failed is not None:
            return failed
        known = self._by_nonce(place, nonce)
        if known is None:
            id = platform.next_id()
            known = _Message(
                id=id, place=place, text=text, nonce=nonce, buttons=buttons, files=files
            )
            platform.messages[id] = known
            platform.tell()
        if platform.troubles.pop("lose", None) is not None:
            return PostResult(error="the answer was lost", is_uncertain=True)
        return PostResult(message_id=known.id)

    def _trouble(self) -> PostResult | None:
        platform = self._platform
        troubles = platform.troubles
        if platform.is_revoked:
            return PostResult(error="the token was revoked", is_permanent=True)
        pause = troubles.pop("rate", None)
        if pause is not None:
            return PostResult(error="too many messages", retry_after=pause)
        if troubles.pop("refuse", None) is not None:
            return PostResult(error="not allowed", is_permanent=True)
        if troubles.pop("break", None) is not None:
            return PostResult(error="server error")
        return None

    async def edit(self, message_id: str, post: ChatPost) -> PostResult:
        """Replace the text and the buttons of a message."""
        failed = self._trouble()
        if failed is not None:
            return failed
        message = self._platform.messages.get(message_id)
        if message is None:
            return PostResult(error="there is no such message", is_permanent=True)
        message.text, message.buttons = post.text, tuple(post.buttons)
        self._platform.tell()
        return PostResult(message_id=message_id)

    async def delete(self, place: ChatPlace, message_id: str) -> PostResult:
        """Remove a message."""
        self._platform.messages.pop(message_id, None)
        self._platform.tell()
        return PostResult(message_id=message_id)

    async def find_post(self, place: ChatPlace, nonce: str) -> str | None:
        """Return the id of the message with that nonce."""
        known = self._by_nonce(place, nonce)
        return None if known is None else known.id

    def _by_nonce(self, place: ChatPlace, nonce: str) -> _Message | None:
        messages = self._platform.messages.values()
        return next(
            (one for one in messages if one.nonce == nonce and one.place == place and nonce), None
        )

    async def download(self, file: IncomingFile, target: str, limit: int) -> None:
        """Write the file."""
        content = self._platform.files[file.id]
        if len(content) > limit:
            raise NightherdError(f"the file has more than {limit} bytes")
        await anyio.Path(target).write_bytes(content)

    async def react(
        self, place: ChatPlace, message_id: str, emoji: str, *, is_on: bool
    ) -> PostResult:
        """Add or remove a reaction."""
        message = self._platform.messages.get(message_id)
        if message is None:
            return PostResult(error="there is no such message", is_permanent=True)
        if is_on:
            message.reactions.add(emoji)
        else:
            message.reactions.discard(emoji)
        self._platform.tell()
        return PostResult(message_id=message_id)

    async def typing(self, place: ChatPlace) -> None:
        """Remember that it writes."""
        self._platform.typed.append(place)

    async def people(self, user_ids: Sequence[str]) -> Mapping[str, str]:
        """Return what the people are called."""
        names = self._platform.names
        return {id: names[id] for id in user_ids if id in names}
