"""Discord on the loopback interface: its REST API v10, its gateway and its files, for tests of bots.

    with DiscordApi(directory) as discord:
        environment = discord.environment         # the token, the address, the certificate
        settings = ... ChannelSettings(id=discord.channel_id) ...
        discord.say("hello", names_bot=True)
        discord.posted()

It runs in a thread of its own, listens on 127.0.0.1 only and calls no other host. For a fleet of your own, start
nightherd with the variables of `environment`: `NIGHTHERD_DISCORD_API_URL` names this server, `SSL_CERT_FILE` its
certificate, and `DISCORD_BOT_TOKEN` the token. People write, press and fill in by the methods below, from any
thread; none of them blocks. `rest.fail` makes requests fail as Discord makes them fail, `gateway` breaks connections.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from nightherd.host.system import SystemClock
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import API_URL_VARIABLES
from nightherd.ports import Clock
from nightherd.testing.contracts.open_chat import Posted
from nightherd.testing.discord_certificate import make_certificate
from nightherd.testing.discord_gateway import HEARTBEAT_S, DiscordGateway
from nightherd.testing.discord_interactions import Interaction, Interactions
from nightherd.testing.discord_rest import DiscordRest
from nightherd.testing.discord_shapes import Json
from nightherd.testing.discord_world import BotAccount, DiscordWorld, buttons_of

TOKEN_VARIABLE = "DISCORD_BOT_TOKEN"  # noqa: S105 (a name)
TOKEN = "loopback.discord.token-of-coder"  # noqa: S105 (it opens nothing)
CERTIFICATE_VARIABLE = "SSL_CERT_FILE"
POST_MESSAGE = r"POST /channels/\d+/messages"
BODY_LIMIT = 32 * 1024 * 1024


class DiscordApi:
    """A server that runs while its context lasts: one Discord server with the channel `general`, Ada, and a bot."""

    def __init__(
        self,
        directory: Path,
        *,
        bot_name: str = "coder",
        user_name: str = "Ada",
        clock: Clock | None = None,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        clock = clock or SystemClock()
        self.gateway = DiscordGateway(heartbeat_s)
        self.world = DiscordWorld(clock, self.gateway.emit)
        self.interactions = Interactions(self.world)
        self.rest = DiscordRest(self.world, self.interactions)
        self.bot = self.world.add_bot(bot_name, TOKEN)
        self.user_name = user_name
        self.user_id = str(self.world.add_user(user_name)["id"])
        self.channel_id = str(self.world.add_channel("general")["id"])
        self.certificate, self._tls = make_certificate(directory, clock)
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._is_up = threading.Event()
        self._is_over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables by which the bot reaches this server and no other."""
        return {
            TOKEN_VARIABLE: self.bot.token,
            API_URL_VARIABLES[Platform.DISCORD]: self.url,
            CERTIFICATE_VARIABLE: str(self.certificate),
        }

    @property
    def guild_id(self) -> str:
        """The Discord server."""
        return self.world.guild_id

    # People

    def say(
        self,
        text: str,
        *,
        names_bot: bool = False,
        file: bytes | None = None,
        channel: str | None = None,
        user: str | None = None,
        is_voice: bool = False,
    ) -> str:
        """A person writes, with a text file or as a voice note perhaps; returns the message's id."""
        content = f"<@{self.bot.id}> {text}" if names_bot else text
        kind = (
            ("voice.ogg", "audio/ogg") if is_voice else ("notes.txt", "text/plain; charset=utf-8")
        )
        files = [] if file is None else [(*kind, file)]
        with self.world.lock:
            author = self.world.users[user or self.user_id]
            place = self.world.channels[channel or self.channel_id]
            payload = {"content": content}
            return str(self.world.post(place, author, payload, files, is_voice=is_voice)["id"])

    def deliver_again(self, message_id: str) -> None:
        """Tell the bots of a message once more, as a gateway may after it was interrupted."""
        with self.world.lock:
            channel, message = self._message(message_id)
            self.world.tell(channel["id"], "MESSAGE_CREATE", self.world.event(message))

    def reply(self, message_id: str, text: str, *, pings: bool = True) -> str:
        """A person replies to a message; returns the id of the reply."""
        with self.world.lock:
            channel, message = self._message(message_id)
            payload = {
                "content": text,
                "message_reference": {"message_id": message_id},
                "pings": [message["author"]] if pings else [],
            }
            author = self.world.users[self.user_id]
            return str(self.world.post(channel, author, payload, [])["id"])

    def forward(self, text: str) -> str:
        """A person forwards a message from elsewhere; returns the id that it has here."""
        with self.world.lock:
            place, author = self.world.channels[self.channel_id], self.world.users[self.user_id]
            return str(self.world.post(place, author, {"forwards": text}, [])["id"])

    def press(
        self, message_id: str, label: str, comment: str | None = None, *, user: str | None = None
    ) -> None:
        """A person presses a button of a message, and fills in the window that it opens, if there is a comment."""
        with self.world.lock:
            channel, message = self._message(message_id)
            button = next(one for one in buttons_of(message) if one["label"] == label)
            person = self.world.users[user or self.user_id]
            self.interactions.press(channel, message, button, person, comment)

    def command(
        self, name: str, argument: str = "", *, channel: str | None = None, user: str | None = None
    ) -> None:
        """A person uses a slash command. `KeyError` for one that the bot did not register."""
        with self.world.lock:
            place = self.world.channels[channel or self.channel_id]
            person = self.world.users[user or self.user_id]
            self.interactions.command(self.bot, place, person, name, argument)

    def remove(self, message_id: str) -> None:
        """Somebody deletes a message."""
        with self.world.lock:
            channel, message = self._message(message_id)
            self.world.delete(channel["id"], message["id"])

    # Places and accounts

    def add_user(self, name: str) -> str:
        """A further person; returns their id."""
        with self.world.lock:
            return str(self.world.add_user(name)["id"])

    def add_bot(self, name: str, token: str) -> BotAccount:
        """A further bot, with a token of its own."""
        with self.world.lock:
            return self.world.add_bot(name, token)

    def add_channel(self, name: str) -> str:
        """A further channel; returns its id."""
        with self.world.lock:
            return str(self.world.add_channel(name)["id"])

    def add_thread(self, name: str, parent: str | None = None) -> str:
        """A thread of a channel; returns its id."""
        with self.world.lock:
            return str(self.world.add_thread(name, parent or self.channel_id, self.user_id)["id"])

    def direct_channel(self, user: str | None = None) -> str:
        """The conversation of a person with the bot; returns its id."""
        with self.world.lock:
            return str(self.world.direct_channel(user or self.user_id, self.bot)["id"])

    # What the bot did

    def posted(self, channel: str | None = None) -> Sequence[Posted]:
        """Return what the bot has posted in the channel, oldest first."""
        with self.world.lock:
            messages = self.world.messages.get(channel or self.channel_id, {}).values()
            return [
                Posted(
                    id=one["id"],
                    text=one["content"],
                    buttons=tuple(button["label"] for button in buttons_of(one)),
                    files=tuple(file["filename"] for file in one["attachments"]),
                    reactions=tuple(self.reactions(one["id"])),
                )
                for one in messages
                if one["author"] is self.bot.user
            ]

    def reactions(self, message_id: str) -> Sequence[str]:
        """Return the bot's reactions to a message."""
        with self.world.lock:
            reactions = self.world.reactions.get(message_id, {})
            return sorted(emoji for emoji, who in reactions.items() if self.bot.id in who)

    def answers(self) -> Sequence[Interaction]:
        """Return every use of a button, a window or a slash command, with what the bot answered."""
        with self.world.lock:
            return list(self.interactions.all)

    def wait_until(self, is_so: Callable[[], bool], timeout_s: float = 60.0) -> bool:
        """Return whether something becomes so, looking after everything that bots do. This blocks."""
        with self.world.news:
            return self.world.news.wait_for(is_so, timeout_s)

    # Trouble

    def limit_rate(self, pause: timedelta) -> None:
        """Refuse the next message of the bot: too many."""
        self.rest.limit_rate(POST_MESSAGE, pause)

    def refuse(self) -> None:
        """Refuse the next message of the bot for good."""
        self.rest.fail(POST_MESSAGE, 403, code=50013, message="Missing Permissions")

    def lose_answer(self) -> None:
        """Take the next message of the bot, and lose the connection before the answer."""
        self.rest.fail(POST_MESSAGE, None, is_done=True)

    def break_down(self) -> None:
        """Answer the next message of the bot with a server error."""
        self.rest.fail(POST_MESSAGE, 503, body={"message": "Service unavailable"})

    def drop(self) -> None:
        """Cut the connections of the gateway."""
        self._in_loop(self.gateway.drop)

    def revoke(self) -> None:
        """The bot's token is worth nothing from now on."""
        with self.world.lock:
            self.bot.is_revoked = True

    def reconnect(self) -> None:
        """Ask the clients to connect anew, as Discord does every few hours."""
        self._in_loop(self.gateway.ask_to_reconnect)

    def invalidate(self, *, is_resumable: bool = False) -> None:
        """Tell the clients that their sessions are over."""
        self._in_loop(lambda: self.gateway.invalidate(is_resumable=is_resumable))

    def forget_sessions(self) -> None:
        """Forget every session: a client that connects anew cannot resume."""
        self._in_loop(self.gateway.forget_sessions)

    # The server

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_up.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._is_over.set)
        self._thread.join()

    def _in_loop(self, act: Callable[..., Any], *arguments: Any) -> None:
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(act, *arguments)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self.gateway.serve_world(self.world, self._in_loop)
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_get("/", self.gateway.serve)
        self.rest.add_routes(app)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        self._port = runner.addresses[0][1]
        self._is_up.set()
        await self._is_over.wait()
        self.gateway.drop()
        await runner.cleanup()

    def _message(self, id: str) -> tuple[Json, Json]:
        for channel_id, messages in self.world.messages.items():
            if id in messages:
                return self.world.channels[channel_id], messages[id]
        raise KeyError(id)
