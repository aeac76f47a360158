"""Discord's REST API v10 on the loopback interface, as far as bots that talk need it."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec
from aiohttp import BodyPartReader, web

from nightherd.testing.discord_interactions import Interactions
from nightherd.testing.discord_shapes import Json, application_shape
from nightherd.testing.discord_world import BotAccount, DiscordRefusal, DiscordWorld

API = "/api/v10"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Act = Callable[[BotAccount, Mapping[str, str], "Body"], Any]
"""What an authorised request does; None is answered with 204."""


class Failing(msgspec.Struct, kw_only=True):
    """How the next requests fail."""

    matching: str
    """A regular expression for a part of the line of the request, such as `POST /channels/1/messages`."""
    status: int | None
    """None cuts the connection."""
    body: Json
    headers: Mapping[str, str]
    times: int
    is_done: bool
    """Whether what was asked is done all the same."""


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What a request brought."""

    data: Any = None
    files: tuple[tuple[str, str, bytes], ...] = ()
    query: Mapping[str, str] = msgspec.field(default_factory=dict)


class DiscordRest:
    """The API of a world. `lines` has every request so far."""

    def __init__(self, world: DiscordWorld, interactions: Interactions) -> None:
        self._world = world
        self._interactions = interactions
        self.failing: list[Failing] = []
        self.lines: list[str] = []

    def fail(
        self,
        matching: str,
        status: int | None,
        *,
        code: int = 0,
        message: str = "Service unavailable",
        body: Json | None = None,
        headers: Mapping[str, str] | None = None,
        times: int = 1,
        is_done: bool = False,
    ) -> None:
        """Make the next requests fail whose line matches an expression. Status None cuts the connection."""
        shape = {"code": code, "message": message} if body is None else body
        failing = Failing(
            matching=matching,
            status=status,
            body=shape,
            headers=dict(headers or {}),
            times=times,
            is_done=is_done,
        )
        with self._world.lock:
            self.failing.append(failing)

    def limit_rate(self, matching: str, pause: timedelta, *, times: int = 1) -> None:
        """Refuse the next requests: too many."""
        seconds = pause.total_seconds()
        body = {"message": "You are being rate limited.", "retry_after": seconds, "global": False}
        headers = {
            "Via": "1.1 google",
            "Retry-After": str(int(seconds)),
            "X-RateLimit-Limit": "5",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset-After": str(seconds),
            "X-RateLimit-Bucket": "loopback",
        }
        self.fail(matching, 429, body=body, headers=headers, times=times)

    def add_routes(self, app: web.Application) -> None:
        """Serve the API."""
        world = self._world
        message = "/channels/{channel}/messages/{message}"
        routes: list[tuple[str, str, Act]] = [
            ("GET", "/users/@me", self._whoami),
            ("GET", "/users/{user}", self._user),
            (
                "GET",
                "/oauth2/applications/@me",
                lambda bot, *_: application_shape(bot.user, world.owner),
            ),
            ("GET", "/applications/{app}/commands", lambda bot, *_: bot.commands.get(None, [])),
            ("PUT", "/applications/{app}/commands", self._set_commands),
            ("GET", "/applications/{app}/guilds/{guild}/commands", self._guild_commands),
            ("PUT", "/applications/{app}/guilds/{guild}/commands", self._set_commands),
            ("GET", "/channels/{channel}", lambda bot, at, _: world.channel(at["channel"], bot)),
            ("GET", "/channels/{channel}/messages", self._history),
            ("POST", "/channels/{channel}/messages", self._post),
            ("POST", "/channels/{channel}/typing", self._type),
            ("GET", message, self._message),
            ("PATCH", message, self._edit),
            ("DELETE", message, self._delete),
            ("PUT", message + "/reactions/{emoji}/@me", self._react),
            ("DELETE", message + "/reactions/{emoji}/@me", self._unreact),
        ]
        for method, path, act in routes:
            app.router.add_route(method, API + path, self._handler(act))
        open_routes: list[tuple[str, str, Callable[..., Any]]] = [
            ("POST", "/interactions/{id}/{token}/callback", self._callback),
            ("POST", "/webhooks/{app}/{token}", self._follow_up),
        ]
        for method, path, do in open_routes:
            app.router.add_route(method, API + path, self._handler(do, needs_bot=False))
        app.router.add_get("/attachments/{channel}/{id}/{name}", self._file)

    def _handler(self, act: Callable[..., Any], *, needs_bot: bool = True) -> Handler:
        async def serve(request: web.Request) -> web.StreamResponse:
            body = await _read(request)
            line = f"{request.method} {request.path.removeprefix(API)}"
            with self._world.lock:
                self.lines.append(line)
                self._world.news.notify_all()
                failing = self._next_failure(line)
                if failing is not None and not failing.is_done:
                    return self._failed(request, failing)
                try:
                    bot = self._bot(request) if needs_bot else None
                    answer = act(bot, request.match_info, body)
                except DiscordRefusal as error:
                    return _json({"code": error.code, "message": error.message}, error.status)
                if failing is not None:
                    return self._failed(request, failing)
                # As text, before the lock is let go.
                return web.Response(status=204) if answer is None else _json(answer)

        return serve

    def _next_failure(self, line: str) -> Failing | None:
        for one in self.failing:
            if re.search(one.matching, line):
                one.times -= 1
                if not one.times:
                    self.failing.remove(one)
                return one
        return None

    def _failed(self, request: web.Request, failing: Failing) -> web.StreamResponse:
        if failing.status is None:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)  # nobody hears it
        return _json(failing.body, failing.status, failing.headers)

    def _bot(self, request: web.Request) -> BotAccount:
        token = request.headers.get("Authorization", "").removeprefix("Bot ")
        bot = self._world.bots.get(token)
        if bot is None or bot.is_revoked:
            raise DiscordRefusal(401, 0, "401: Unauthorized")
        return bot

    def _whoami(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> Json:
        bot.logins += 1
        return bot.user

    def _user(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> Json:
        user = self._world.users.get(at["user"])
        if user is None:
            raise DiscordRefusal(404, 10013, "Unknown User")
        return user

    def _guild_commands(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> list[Json]:
        if at["guild"] != self._world.guild_id:
            raise DiscordRefusal(403, 50001, "Missing Access")
        return bot.commands.get(at["guild"], [])

    def _set_commands(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> list[Json]:
        guild_id = at.get("guild")
        if guild_id not in (None, self._world.guild_id):
            raise DiscordRefusal(403, 50001, "Missing Access")
        more = {"application_id": bot.id, "version": "1", "nsfw": False}
        commands = [{"id": self._world.new_id(), **more, **one} for one in body.data]
        bot.commands[guild_id] = commands
        return commands

    def _history(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> list[Json]:
        self._world.channel(at["channel"], bot)
        return self._world.history(at["channel"], dict(body.query))

    def _post(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> Json:
        channel = self._world.channel(at["channel"], bot)
        return self._world.post(channel, bot.user, body.data, body.files)

    def _message(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> Json:
        self._world.channel(at["channel"], bot)
        return self._world.shown(self._world.message(at["channel"], at["message"]))

    def _edit(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> Json:
        self._world.channel(at["channel"], bot)
        return self._world.edit(at["channel"], at["message"], bot.user, body.data)

    def _delete(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> None:
        self._world.channel(at["channel"], bot)
        self._world.delete(at["channel"], at["message"])

    def _react(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> None:
        self._world.message(at["channel"], at["message"])
        reactions = self._world.reactions.setdefault(at["message"], {})
        reactions.setdefault(at["emoji"], set()).add(bot.id)

    def _unreact(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> None:
        self._world.message(at["channel"], at["message"])
        who = self._world.reactions.get(at["message"], {}).get(at["emoji"], set())
        if bot.id not in who:
            raise DiscordRefusal(404, 10014, "Unknown Emoji")
        who.remove(bot.id)

    def _type(self, bot: BotAccount, at: Mapping[str, str], body: Body) -> None:
        self._world.channel(at["channel"], bot)
        self._world.typed.append(at["channel"])

    def _callback(self, _: None, at: Mapping[str, str], body: Body) -> Json:
        return self._interactions.respond(at["id"], at["token"], body.data)

    def _follow_up(self, _: None, at: Mapping[str, str], body: Body) -> Json:
        return self._interactions.follow_up(at["token"], body.data)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        with self._world.lock:
            content = self._world.files.get(request.match_info["id"])
        if content is None or request.query.get("hm") != "signed":
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(body=content, content_type="application/octet-stream")


async def _read(request: web.Request) -> Body:
    query = dict(request.query)
    if request.content_type != "multipart/form-data":
        data = await request.read()
        return Body(data=json.loads(data) if data else None, query=query)
    payload: Any = {}
    files: list[tuple[str, str, bytes]] = []
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        content = bytes(await part.read())
        if part.name == "payload_json":
            payload = json.loads(content)
        else:
            files.append((part.filename or "file", "application/octet-stream", content))
    return Body(data=payload, files=tuple(files), query=query)


def _json(shape: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a response as Discord makes it: clients compare its content type as a whole."""
    more = {"Content-Type": "application/json", **(headers or {})}
    return web.Response(body=json.dumps(shape).encode(), status=status, headers=more)
