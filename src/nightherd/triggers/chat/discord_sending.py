"""What a bot sends on Discord: each request once, with its result. Only discord.py waits, for at most half a minute."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import discord
from anyio import to_thread

from nightherd.errors import NightherdError
from nightherd.model.chat.platform import ChatPlace
from nightherd.ports.chat import Button, ChatPost, ChatUpload, PostResult
from nightherd.triggers.chat.discord_errors import FAILURES, UNKNOWN_EMOJI, failure, reason
from nightherd.triggers.chat.discord_incoming import ASKS

TIMEOUT_S = 90.0
"""For one request: discord.py may wait half a minute of that."""
TYPING_TIMEOUT_S = 10.0
LATEST = 100
"""Messages among which a message of ours is looked for."""
MOST_NONCES = 1_000
LONGEST_LABEL = 80
NO_CLIENT = PostResult(error="Discord: not connected")

Send = Callable[[discord.Client], Awaitable[str | None]]
"""Makes one request; returns the id of the message, if it is about one."""


class Sending:
    """Sends for one bot, through the client that it has at the moment."""

    def __init__(self) -> None:
        self.client: discord.Client | None = None
        """None while nobody is logged in."""
        self.on_failure: Callable[[BaseException], None] = _ignore
        """Called with every failure of a request."""
        self._nonces: OrderedDict[tuple[str, str], str] = OrderedDict()

    def see(self, message: discord.Message) -> None:
        """Remember a message of ours that Discord shows."""
        if message.nonce is None:
            return
        self._nonces[str(message.channel.id), str(message.nonce)] = str(message.id)
        while len(self._nonces) > MOST_NONCES:
            self._nonces.popitem(last=False)

    async def post(self, post: ChatPost) -> PostResult:
        """Send a message."""

        async def send(client: discord.Client) -> str:
            channel = client.get_partial_messageable(int(post.place.channel_id))
            reference = None
            if post.reply_to is not None:
                reference = discord.MessageReference(
                    message_id=int(post.reply_to), channel_id=channel.id, fail_if_not_exists=False
                )
            view = _view(post)
            if view is not None and reference is not None:
                sent = await channel.send(
                    post.text, nonce=post.nonce, view=view, reference=reference
                )
            elif view is not None:
                sent = await channel.send(post.text, nonce=post.nonce, view=view)
            elif reference is not None:
                sent = await channel.send(post.text, nonce=post.nonce, reference=reference)
            else:
                sent = await channel.send(post.text, nonce=post.nonce)
            return str(sent.id)

        return await self._request(send)

    async def edit(self, message_id: str, post: ChatPost) -> PostResult:
        """Replace the text and the buttons of a message of ours."""

        async def send(client: discord.Client) -> str:
            message = _message(client, post.place, message_id)
            await message.edit(content=post.text, view=_view(post))
            return message_id

        return await self._request(send)

    async def delete(self, place: ChatPlace, message_id: str) -> PostResult:
        """Remove a message of ours."""

        async def send(client: discord.Client) -> str:
            await _message(client, place, message_id).delete()
            return message_id

        return await self._request(send)

    async def upload(self, upload: ChatUpload) -> PostResult:
        """Send a file."""
        try:
            file = await to_thread.run_sync(
                partial(discord.File, upload.path, filename=upload.name)
            )
        except OSError as error:
            message = f"the file cannot be read: {error.strerror}"
            return PostResult(error=message, is_permanent=True)

        async def send(client: discord.Client) -> str:
            channel = client.get_partial_messageable(int(upload.place.channel_id))
            sent = await channel.send(upload.text or None, nonce=upload.nonce, file=file)
            return str(sent.id)

        try:
            return await self._request(send)
        finally:
            file.close()

    async def react(
        self, place: ChatPlace, message_id: str, emoji: str, *, is_on: bool
    ) -> PostResult:
        """Add or remove a reaction of ours."""

        async def send(client: discord.Client) -> str:
            message = _message(client, place, message_id)
            if is_on:
                await message.add_reaction(emoji)
                return message_id
            me = client.user
            assert me is not None  # noqa: S101 (a client that is logged in)
            try:
                await message.remove_reaction(emoji, me)
            except discord.NotFound as error:
                if error.code != UNKNOWN_EMOJI:
                    raise
            return message_id

        return await self._request(send)

    async def typing(self, place: ChatPlace) -> None:
        """Show that an answer is being written; it does not matter whether that works."""

        async def send(client: discord.Client) -> None:
            await client.get_partial_messageable(int(place.channel_id)).typing()

        await self._request(send, TYPING_TIMEOUT_S)

    async def find_post(self, place: ChatPlace, nonce: str) -> str | None:
        """Return the id of the message of ours with that nonce. `NightherdError` if it cannot be looked for."""
        known = self._nonces.get((place.channel_id, nonce))
        if known is not None:
            return known
        client = self.client
        if client is None:
            raise NightherdError(NO_CLIENT.error)
        channel = client.get_partial_messageable(int(place.channel_id))
        try:
            with anyio.fail_after(TIMEOUT_S):
                async for message in channel.history(limit=LATEST):
                    is_own = client.user is not None and message.author.id == client.user.id
                    if is_own and str(message.nonce) == nonce:
                        return str(message.id)
        except FAILURES as error:
            self.on_failure(error)
            raise NightherdError(f"the channel cannot be read: {reason(error)}") from None
        return None

    async def _request(self, send: Send, timeout_s: float = TIMEOUT_S) -> PostResult:
        """Make one request, and sort what came of it."""
        client = self.client
        if client is None:
            return NO_CLIENT
        try:
            with anyio.fail_after(timeout_s):
                return PostResult(message_id=await send(client))
        except FAILURES as error:
            self.on_failure(error)
            return failure(error)
        except ValueError:
            return PostResult(error="Discord has no such place or message", is_permanent=True)


def _message(client: discord.Client, place: ChatPlace, message_id: str) -> discord.PartialMessage:
    channel = client.get_partial_messageable(int(place.channel_id))
    return channel.get_partial_message(int(message_id))


def _view(post: ChatPost) -> discord.ui.View | None:
    """Return the buttons as discord.py has them; it is not to remember them."""
    if not post.buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in post.buttons:
        view.add_item(_button(button))
    view.stop()
    return view


def _button(button: Button) -> discord.ui.Button[discord.ui.View]:
    style = discord.ButtonStyle.secondary
    if button.is_dangerous:
        style = discord.ButtonStyle.danger
    elif button.is_primary:
        style = discord.ButtonStyle.primary
    custom_id = f"{ASKS}{button.id}" if button.asks_comment else button.id
    return discord.ui.Button(style=style, label=button.label[:LONGEST_LABEL], custom_id=custom_id)


def _ignore(_: BaseException) -> None:
    """Do nothing."""
