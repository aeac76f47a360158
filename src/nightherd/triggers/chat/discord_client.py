"""discord.py's client as nightherd uses it: what it asks Discord for, and where it connects to."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit
from weakref import WeakSet

import aiohttp
import anyio
import discord
from aiohttp.abc import AbstractResolver, ResolveResult

from nightherd.errors import ConfigError
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import API_URL_VARIABLES, PresenceSettings

CERTIFICATE_VARIABLE = "SSL_CERT_FILE"
"""Variable of the process that names certificates to trust; OpenSSL reads it too."""
SHORTEST_RATE_LIMIT_S = 30.0
"""discord.py waits by itself when Discord asks for less; for more, the outbox does."""
PERMISSIONS = discord.Permissions(
    view_channel=True,
    send_messages=True,
    send_messages_in_threads=True,
    attach_files=True,
    read_message_history=True,
    add_reactions=True,
)
"""What the bot needs in its channels."""
HTTPS = 443
LET_GO_S = 0.005
SCOPES = ("bot", "applications.commands")
_ACTIVITIES = {
    "playing": discord.ActivityType.playing,
    "watching": discord.ActivityType.watching,
    "listening": discord.ActivityType.listening,
    "competing": discord.ActivityType.competing,
}


class ClientEvents(Protocol):
    """Takes what happens to a client, in the order in which it happens. Nothing here may wait."""

    def ready(self) -> None:
        """A new session began."""

    def guilds_changed(self) -> None:
        """More is known about the servers that the bot is in."""

    def resumed(self) -> None:
        """The last session goes on."""

    def lost(self) -> None:
        """The connection is gone; the client tries to resume."""

    def message(self, message: discord.Message) -> None:
        """Somebody wrote something."""

    def interaction(self, interaction: discord.Interaction) -> None:
        """Somebody pressed a button, filled in a window, or used a slash command."""


class DiscordClient(discord.Client):
    """A client that remembers no messages and no members."""

    def __init__(
        self,
        events: ClientEvents,
        connector: aiohttp.BaseConnector,
        presence: PresenceSettings | None,
        *,
        heartbeat_timeout_s: float,
        identify_pause_s: float,
    ) -> None:
        super().__init__(
            intents=intents(),
            connector=connector,
            activity=_activity(presence),
            allowed_mentions=discord.AllowedMentions.none(),
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            max_messages=None,
            max_ratelimit_timeout=SHORTEST_RATE_LIMIT_S,
            heartbeat_timeout=heartbeat_timeout_s,
        )
        self._events = events
        self._identify_pause_s = identify_pause_s

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Pause before a new session, but not before the first one."""
        if not initial:
            await anyio.sleep(self._identify_pause_s)

    async def on_connect(self) -> None:
        """A new session began: READY was received."""
        self._events.ready()

    async def on_resumed(self) -> None:
        """The last session goes on."""
        self._events.resumed()

    async def on_disconnect(self) -> None:
        """The connection is gone, or was not made."""
        self._events.lost()

    async def on_guild_available(self, _: discord.Guild) -> None:
        """A server became known."""
        self._events.guilds_changed()

    async def on_guild_join(self, _: discord.Guild) -> None:
        """A server became known."""
        self._events.guilds_changed()

    async def on_message(self, message: discord.Message) -> None:
        """Somebody wrote something."""
        self._events.message(message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Somebody used the bot."""
        self._events.interaction(interaction)


def intents() -> discord.Intents:
    """Return what the bot is told about: servers, their channels, and messages with their content."""
    return discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)


def check_environment(environment: Mapping[str, str]) -> None:
    """Raise `ConfigError` for an address or a file of certificates that cannot be used."""
    _trusted(environment)
    _server(environment)


@asynccontextmanager
async def open_connector(
    environment: Mapping[str, str], close_s: float
) -> AsyncIterator[aiohttp.BaseConnector]:
    """Give what makes the client's connections: to Discord, or to the server that the environment names.

    No connection is left at the end: TLS would wait for the other side's goodbye.
    """
    server = _server(environment)
    sockets: WeakSet[socket.socket] = WeakSet()

    def new_socket(address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        sockets.add(made)
        return made

    connector = aiohttp.TCPConnector(
        ssl=_trusted(environment),
        limit=0,
        resolver=None if server is None else OneServer(*server),
        use_dns_cache=server is None,
        socket_factory=new_socket,
    )
    try:
        yield connector
    finally:
        with anyio.move_on_after(close_s, shield=True):
            await connector.close()
            while left := [one for one in sockets if one.fileno() >= 0]:
                for one in left:
                    _cut(one)
                await anyio.sleep(LET_GO_S)


def _cut(connection: socket.socket) -> None:
    """End a connection; its transport closes the socket then."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # not connected, or not any more


def _trusted(environment: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    certificates = environment.get(CERTIFICATE_VARIABLE, "").strip()
    try:
        if certificates:
            context.load_verify_locations(cafile=certificates)
    except (OSError, ssl.SSLError) as error:
        message = f"{CERTIFICATE_VARIABLE} names no file of certificates: {error}"
        hint = f"unset {CERTIFICATE_VARIABLE}, or name a file of certificates in PEM format"
        raise ConfigError(message, hint=hint) from error
    return context


def _server(environment: Mapping[str, str]) -> tuple[str, int] | None:
    """Return host and port of another server that plays Discord; None if none is named."""
    name = API_URL_VARIABLES[Platform.DISCORD]
    url = environment.get(name, "").strip()
    if not url:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port or HTTPS
    except ValueError as error:
        raise ConfigError(f"{name} is no address: {error}", hint=f"unset {name}") from error
    is_plain = parts.path in ("", "/") and not parts.query and parts.username is None
    if parts.scheme != "https" or not parts.hostname or not is_plain:
        raise ConfigError(
            f"{name} has to be https://HOST or https://HOST:PORT",
            hint=f"unset {name}, or name a server that answers for discord.com",
        )
    return parts.hostname, port


class OneServer(AbstractResolver):
    """Resolves every name to one server, which has a certificate for them."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._resolver: AbstractResolver | None = None

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the server's addresses, whatever the name."""
        self._resolver = self._resolver or aiohttp.ThreadedResolver()
        answers = await self._resolver.resolve(self._host, self._port, family)
        return [{**one, "hostname": host, "port": self._port} for one in answers]

    async def close(self) -> None:
        """Let go of what was used for that."""
        if self._resolver is not None:
            await self._resolver.close()


def _activity(presence: PresenceSettings | None) -> discord.BaseActivity | None:
    if presence is None:
        return None
    kind: Any = _ACTIVITIES.get(presence.activity_type, discord.ActivityType.playing)
    return discord.Activity(type=kind, name=presence.activity_message)
