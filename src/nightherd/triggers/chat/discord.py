"""Discord, by discord.py: a connection of one bot to the gateway and the REST API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio

from nightherd.errors import ChatRefusedError, ConfigError
from nightherd.model.chat.incoming import IncomingFile, IncomingMessage
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.settings import BotSettings
from nightherd.ports.chat import (
    ChatConnection,
    ChatPost,
    ChatReceiver,
    ChatUpload,
    ConnectionState,
    PostResult,
)
from nightherd.triggers.chat.discord_client import check_environment
from nightherd.triggers.chat.discord_incoming import Incoming, Names
from nightherd.triggers.chat.discord_reading import Reading
from nightherd.triggers.chat.discord_sending import Sending
from nightherd.triggers.chat.discord_session import DiscordSession, SessionEndedError, Timing

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Discord allows a thousand logins a day."""
LONG_S = 60.0
"""A session that lasted so long is no failed try."""


def open_discord(settings: BotSettings, environment: Mapping[str, str]) -> ChatConnection:
    """Return the connection of a bot, not running yet.

    `environment` has the bot's token, and may name another server in `NIGHTHERD_DISCORD_API_URL` and
    certificates to trust in `SSL_CERT_FILE`. `ConfigError` when one of them cannot be used.
    """
    if not environment.get(settings.token_env, "").strip():
        hint = f"set {settings.token_env} to the bot's token (docs/guide/discord.md)"
        raise ConfigError(f"{settings.token_env} is not set", hint=hint)
    check_environment(environment)
    return DiscordConnection(settings, environment)


class DiscordConnection:
    """A `ChatConnection`."""

    def __init__(
        self,
        settings: BotSettings,
        environment: Mapping[str, str],
        *,
        timing: Timing | None = None,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        names = Names()
        self._settings = settings
        self._environment = environment
        self._timing = timing or Timing()
        self._first_pause_s = first_pause_s
        self._incoming = Incoming(settings.bot, names)
        self._sending = Sending()
        self._reading = Reading(self._sending, self._incoming, names)

    def __repr__(self) -> str:
        return f"DiscordConnection({self._settings.bot!r})"

    async def run(self, receiver: ChatReceiver) -> None:
        """Connect, and stay connected with growing pauses until cancelled."""
        pause_s = self._first_pause_s
        while True:
            begun = anyio.current_time()
            try:
                await self._session(receiver).run()
            except ChatRefusedError as error:
                await receiver.state(ConnectionState(is_connected=False, error=error.message))
                raise
            except SessionEndedError as error:
                await receiver.state(ConnectionState(is_connected=False, error=error.message))
            if anyio.current_time() - begun > LONG_S:
                pause_s = self._first_pause_s
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _session(self, receiver: ChatReceiver) -> DiscordSession:
        return DiscordSession(
            self._settings,
            self._environment,
            receiver,
            self._incoming,
            self._sending,
            self._reading,
            self._timing,
        )

    async def history(
        self, place: ChatPlace, after: str | None, limit: int
    ) -> Sequence[IncomingMessage]:
        """Return messages of people in a place, oldest first."""
        return await self._reading.history(place, after, limit)

    async def post(self, post: ChatPost) -> PostResult:
        """Send a message."""
        return await self._sending.post(post)

    async def edit(self, message_id: str, post: ChatPost) -> PostResult:
        """Replace the text and the buttons of a message of ours."""
        return await self._sending.edit(message_id, post)

    async def delete(self, place: ChatPlace, message_id: str) -> PostResult:
        """Remove a message of ours."""
        return await self._sending.delete(place, message_id)

    async def find_post(self, place: ChatPlace, nonce: str) -> str | None:
        """Return the id of the message of ours with that nonce."""
        return await self._sending.find_post(place, nonce)

    async def upload(self, upload: ChatUpload) -> PostResult:
        """Send a file."""
        return await self._sending.upload(upload)

    async def download(self, file: IncomingFile, target: str, limit: int) -> None:
        """Fetch a file that was sent along into a new file."""
        await self._reading.download(file, target, limit)

    async def react(
        self, place: ChatPlace, message_id: str, emoji: str, *, is_on: bool
    ) -> PostResult:
        """Add or remove a reaction of ours."""
        return await self._sending.react(place, message_id, emoji, is_on=is_on)

    async def typing(self, place: ChatPlace) -> None:
        """Show for some seconds that an answer is being written."""
        await self._sending.typing(place)

    async def people(self, user_ids: Sequence[str]) -> Mapping[str, str]:
        """Return what the people are called, by id."""
        return await self._reading.people(user_ids)
