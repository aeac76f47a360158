"""TerminalConnection: a conversation with the person who sits at this process's terminal, or with a script."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import anyio
from anyio import to_thread

from nightherd.errors import NightherdError
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

MICROSECONDS = 1_000_000
REMEMBERED = 200
"""Messages that are known by their nonce; older ones are on the screen all the same."""


class TerminalView(Protocol):
    """What the person sees. Nothing here waits."""

    def show(self, message_id: str, text: str, buttons: Sequence[Button]) -> None:
        """Show a message, or what it has become."""

    def remove(self, message_id: str) -> None:
        """Forget a message; what is on the screen stays."""

    def file(self, name: str, path: str, text: str) -> None:
        """Say where a file of the agent is."""


class TerminalConnection:
    """One conversation. What the person types is handed on by `say`, `command` and `press`."""

    def __init__(
        self,
        bot: BotId,
        place: ChatPlace,
        view: TerminalView,
        now: Callable[[], datetime],
        *,
        user_id: str,
        user_name: str,
        bot_name: str,
    ) -> None:
        self._bot = bot
        self._place = place
        self._view = view
        self._now = now
        self._user_id = user_id
        self._user_name = user_name
        self._bot_name = bot_name
        self._receiver: ChatReceiver | None = None
        self._connected = anyio.Event()
        self._last = 0
        self._posts: dict[str, tuple[str, tuple[Button, ...]]] = {}
        self._files: set[str] = set()

    async def run(self, receiver: ChatReceiver) -> None:
        """Be there until cancelled."""
        self._receiver = receiver
        await receiver.state(ConnectionState(is_connected=True, bot_name=self._bot_name))
        self._connected.set()
        try:
            await anyio.sleep_forever()
        finally:
            self._connected = anyio.Event()
            self._receiver = None

    async def say(self, text: str) -> str:
        """Hand on what the person said; it is recorded once this returns. `NightherdError` when it cannot be."""
        receiver = await self._known_receiver()
        id = self._next_id()
        await receiver.message(
            IncomingMessage(
                bot=self._bot,
                place=self._place,
                message_id=id,
                sent_at=self._now(),
                user_id=self._user_id,
                user_name=self._user_name,
                text=text,
                is_direct=True,
            )
        )
        return id

    async def command(self, name: str, argument: str = "") -> str:
        """Carry out a command; returns what it says, in markdown."""
        receiver = await self._known_receiver()
        return await receiver.command(
            ChatCommand(
                bot=self._bot,
                place=self._place,
                user_id=self._user_id,
                user_name=self._user_name,
                name=name,
                argument=argument,
                is_direct=True,
                command_id=self._next_id(),
            )
        )

    async def press(self, message_id: str, button: str, comment: str | None = None) -> str | None:
        """Press a button of a message; returns what is said about it, in markdown."""
        receiver = await self._known_receiver()
        return await receiver.press(
            ButtonPress(
                bot=self._bot,
                place=self._place,
                message_id=message_id,
                user_id=self._user_id,
                user_name=self._user_name,
                button=button,
                comment=comment,
            )
        )

    def latest_buttons(self) -> tuple[str, tuple[Button, ...]] | None:
        """Return the newest message that has buttons, with them."""
        for id, (_, buttons) in reversed(self._posts.items()):
            if buttons:
                return id, buttons
        return None

    async def _known_receiver(self) -> ChatReceiver:
        while self._receiver is None:
            await self._connected.wait()
        return self._receiver

    def _next_id(self) -> str:
        """The time in microseconds: greater than any before, in this process and in earlier ones."""
        self._last = max(self._last + 1, int(self._now().timestamp() * MICROSECONDS))
        return str(self._last)

    async def history(
        self, place: ChatPlace, after: str | None, limit: int
    ) -> Sequence[IncomingMessage]:
        """Return nothing: what was typed was recorded, or the person was told that it was not."""
        return ()

    async def post(self, post: ChatPost) -> PostResult:
        """Show a message, unless one with this nonce is shown."""
        if post.nonce not in self._posts:
            self._show(post.nonce, post)
        return PostResult(message_id=post.nonce)

    async def edit(self, message_id: str, post: ChatPost) -> PostResult:
        """Show what a message has become; one of an earlier process is shown as a whole."""
        self._show(message_id, post)
        return PostResult(message_id=message_id)

    def _show(self, message_id: str, post: ChatPost) -> None:
        shown = (post.text, tuple(post.buttons))
        if self._posts.get(message_id) != shown:
            self._posts[message_id] = shown
            while len(self._posts) > REMEMBERED:
                del self._posts[next(iter(self._posts))]
            self._view.show(message_id, post.text, post.buttons)

    async def delete(self, place: ChatPlace, message_id: str) -> PostResult:
        """Forget a message."""
        self._posts.pop(message_id, None)
        self._view.remove(message_id)
        return PostResult(message_id=message_id)

    async def find_post(self, place: ChatPlace, nonce: str) -> str | None:
        """Return the message with that nonce, if this process has shown it."""
        return nonce if nonce in self._posts or nonce in self._files else None

    async def upload(self, upload: ChatUpload) -> PostResult:
        """Say where the file is; it is on this machine."""
        if not await anyio.Path(upload.path).is_file():
            return PostResult(error="the file does not exist any more", is_permanent=True)
        if upload.nonce not in self._files:
            self._files.add(upload.nonce)
            self._view.file(upload.name, upload.path, upload.text)
        return PostResult(message_id=upload.nonce)

    async def download(self, file: IncomingFile, target: str, limit: int) -> None:
        """Copy a file of this machine."""
        try:
            size = (await anyio.Path(file.url).stat()).st_size
            if size > limit:
                raise NightherdError(f"{file.name} has more than {limit:,} bytes")
            await to_thread.run_sync(shutil.copyfile, file.url, target)
        except OSError as error:
            raise NightherdError(f"{file.name} cannot be read: {error.strerror}") from error

    async def react(
        self, place: ChatPlace, message_id: str, emoji: str, *, is_on: bool
    ) -> PostResult:
        """Do nothing: a terminal has no reactions."""
        return PostResult(message_id=message_id)

    async def typing(self, place: ChatPlace) -> None:
        """Do nothing: the answer is shown as it comes."""

    async def people(self, user_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the name of the only person there is."""
        return {id: self._user_name for id in user_ids if id == self._user_id}
