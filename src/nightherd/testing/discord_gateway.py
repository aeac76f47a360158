"""Discord's gateway on the loopback interface: sessions, heartbeats, RESUME, and the ways in which it fails.

Everything here runs in the event loop of the server, but for what says otherwise.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from nightherd.testing.discord_shapes import Json
from nightherd.testing.discord_world import BotAccount, DiscordWorld

DISPATCH, HEARTBEAT, IDENTIFY, PRESENCE, RESUME = 0, 1, 2, 3, 6
RECONNECT, INVALID_SESSION, HELLO, ACK = 7, 9, 10, 11
MESSAGE_CONTENT = 1 << 15
AUTHENTICATION_FAILED, DISALLOWED_INTENTS, UNKNOWN_ERROR = 4004, 4014, 4000
RESUME_URL = "wss://gateway.discord.gg"
HEARTBEAT_S = 41.25
MOST_EVENTS = 10_000
"""How many events of a session can be had again by RESUME."""


class Connection:
    """One websocket. Frames go out in the order in which they were given."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self._socket = socket
        self._transport = request.transport
        is_compressed = request.query.get("compress") == "zlib-stream"
        self._compressor = zlib.compressobj() if is_compressed else None
        self._frames: asyncio.Queue[str] = asyncio.Queue()
        self.session: Session | None = None

    def send(self, op: int, data: Any = None) -> None:
        """Send something that is no event."""
        self.send_text(json.dumps({"op": op, "d": data, "s": None, "t": None}))

    def send_text(self, text: str) -> None:
        """Send a frame."""
        self._frames.put_nowait(text)

    async def write(self) -> None:
        """Send frames until the socket is closed."""
        while True:
            text = await self._frames.get()
            try:
                await self._write(text.encode())
            except (ConnectionError, RuntimeError):
                return

    async def _write(self, data: bytes) -> None:
        if self._compressor is None:
            await self._socket.send_str(data.decode())
            return
        packed = self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        await self._socket.send_bytes(packed)

    async def close(self, code: int, reason: str) -> None:
        """Close the socket with one of Discord's codes."""
        await self._socket.close(code=code, message=reason.encode())

    def abort(self) -> None:
        """Cut the connection without a word."""
        if self._transport is not None:
            self._transport.abort()


class Session(msgspec.Struct, kw_only=True, eq=False):
    """What IDENTIFY begins and RESUME continues."""

    id: str
    bot: BotAccount
    connection: Connection | None
    last: int = 0
    events: deque[tuple[int, str]] = msgspec.field(
        default_factory=lambda: deque(maxlen=MOST_EVENTS)
    )

    def dispatch(self, event: str, data: str) -> None:
        """Send an event, or keep it until the session is resumed."""
        self.last += 1
        text = f'{{"op":0,"t":"{event}","s":{self.last},"d":{data}}}'
        self.events.append((self.last, text))
        if self.connection is not None:
            self.connection.send_text(text)


class DiscordGateway:
    """The gateway of a world."""

    def __init__(self, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._heartbeat_s = heartbeat_s
        self._sessions: dict[str, Session] = {}
        self._connections: set[Connection] = set()
        self._world: DiscordWorld | None = None
        self._call: Callable[..., object] | None = None
        self.is_silent = False
        """Whether new connections, and heartbeats, are left without an answer."""
        self.cuts_at_once = False
        """Whether every new connection is cut as soon as it is made."""
        self.connected = 0
        """How many connections there have been."""

    def serve_world(self, world: DiscordWorld, call: Callable[..., object]) -> None:
        """Serve a world. `call` runs a function in the server's event loop, from any thread."""
        self._world, self._call = world, call

    def emit(self, bot: BotAccount, event: str, data: Json) -> None:
        """Send an event to a bot. May be called in any thread."""
        text = json.dumps(data)
        if self._call is not None:
            self._call(self._dispatch, bot, event, text)

    def _dispatch(self, bot: BotAccount, event: str, data: str) -> None:
        for session in self._sessions.values():
            if session.bot is bot:
                session.dispatch(event, data)

    def drop(self) -> None:
        """Cut every connection."""
        for one in tuple(self._connections):
            one.abort()

    def ask_to_reconnect(self) -> None:
        """Tell every client to connect anew, which it may do by RESUME."""
        for one in tuple(self._connections):
            one.send(RECONNECT)

    def invalidate(self, *, is_resumable: bool) -> None:
        """Tell every client that its session is over; one that is resumable is kept."""
        if not is_resumable:
            self._sessions.clear()
        for one in tuple(self._connections):
            one.send(INVALID_SESSION, is_resumable)

    def forget_sessions(self) -> None:
        """Forget every session without a word: RESUME is answered with INVALID_SESSION."""
        self._sessions.clear()

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection."""
        socket = web.WebSocketResponse(max_msg_size=0, compress=False, timeout=1.0)
        await socket.prepare(request)
        self.connected += 1
        connection = Connection(socket, request)
        if self.cuts_at_once:
            connection.abort()
            return socket
        self._connections.add(connection)
        writing = asyncio.create_task(connection.write())
        try:
            if not self.is_silent:
                connection.send(HELLO, {"heartbeat_interval": int(self._heartbeat_s * 1000)})
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    await self._take(connection, json.loads(frame.data))
                    self._notify()
        finally:
            self._connections.discard(connection)
            if connection.session is not None and connection.session.connection is connection:
                connection.session.connection = None
            writing.cancel()
        return socket

    async def _take(self, connection: Connection, frame: Json) -> None:
        data: Any = frame.get("d")
        match frame.get("op"):
            case 1:
                self._beat(connection)
            case 2:
                await self._identify(connection, data)
            case 6:
                await self._resume(connection, data)
            case 3:
                pass
            case _:
                await connection.close(4001, "Unknown opcode")

    def _notify(self) -> None:
        if self._world is not None:
            with self._world.news:
                self._world.news.notify_all()

    def _beat(self, connection: Connection) -> None:
        if self.is_silent:
            return
        if connection.session is not None:
            connection.session.bot.heartbeats += 1
        connection.send(ACK)

    async def _bot(self, connection: Connection, token: str) -> BotAccount | None:
        world = self._world
        bot = None if world is None else world.bots.get(token.removeprefix("Bot "))
        if bot is None or bot.is_revoked:
            await connection.close(AUTHENTICATION_FAILED, "Authentication failed.")
            return None
        return bot

    async def _identify(self, connection: Connection, data: Json) -> None:
        bot = await self._bot(connection, data["token"])
        if bot is None or self._world is None:
            return
        bot.identified += 1
        if data["intents"] & MESSAGE_CONTENT and not bot.may_read_content:
            await connection.close(DISALLOWED_INTENTS, "Disallowed intent(s).")
            return
        bot.presence = data.get("presence")
        for id, old in tuple(self._sessions.items()):
            if old.bot is bot:
                del self._sessions[id]
        with self._world.lock:
            session = Session(id=self._world.new_id(), bot=bot, connection=connection)
            guild = self._world.guild(bot)
            # Before the lock is let go: what happens from now on is an event of this session.
            self._sessions[session.id] = session
            connection.session = session
            session.dispatch("READY", json.dumps(_ready(session, guild["id"])))
            session.dispatch("GUILD_CREATE", json.dumps(guild))

    async def _resume(self, connection: Connection, data: Json) -> None:
        bot = await self._bot(connection, data["token"])
        if bot is None:
            return
        session = self._sessions.get(data["session_id"] or "")
        is_known = session is not None and session.bot is bot
        if session is None or not is_known or (data["seq"] or 0) > session.last:
            connection.send(INVALID_SESSION, data=False)
            return
        bot.resumed += 1
        session.connection, connection.session = connection, session
        for number, text in session.events:
            if number > (data["seq"] or 0):
                connection.send_text(text)
        session.dispatch("RESUMED", "{}")


def _ready(session: Session, guild_id: str) -> Json:
    return {
        "v": 10,
        "user": session.bot.user,
        "guilds": [{"id": guild_id, "unavailable": True}],
        "private_channels": [],
        "session_id": session.id,
        "resume_gateway_url": RESUME_URL,
        "shard": [0, 1],
        "application": {"id": session.bot.id, "flags": 1 << 19},
    }
