"""Guard: what stands before the API on every way in. What it does not let pass, nothing else sees.

On the unix socket the file's mode decides who may come. On a port a token has to be shown, and the request
has to be addressed to this server by a name it knows, and not come from a page of another site: so no page
in a browser on the same machine can speak for its user. Messages of webhooks are signed instead.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nightherd.errors import NightherdError
from nightherd.model.inbox.token import TOKEN_PREFIX
from nightherd.web.counters import Counters
from nightherd.web.hooks import PREFIX as HOOKS
from nightherd.web.operations import PERSON
from nightherd.web.problem import is_answer_link, problem, problem_of
from nightherd.web.socket_file import OPERATIONS

HEALTH = "/healthz"
LARGEST_HEAD = 32 * 1024
"""Bytes of a request's target and headers."""
ASK_SO = (
    "Authorization: Bearer TOKEN, which is in .nightherd/web-token or what web.token_env names, or is a"
    " named one"
)
CLOSE = {"connection": "close"}
TOO_LARGE = "a body may have at most {} bytes"
API_BODY_LIMIT = 4 * 1024 * 1024
LINK_BODY_LIMIT = 64 * 1024
"""Bytes of an answer that needs no token."""
DISCARDED = 8 * 1024 * 1024
"""Bytes that are read of a body that is not taken, before its sender is hung up on."""
CHUNK_PATIENCE_S = 10.0
"""How long a sender may pause within a body."""
BODY_PATIENCE_S = 60.0
"""How long a whole body may take."""


async def _no_name(token: str) -> str | None:
    """There are no named tokens."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Who may come in by one way."""

    counters: Counters
    hook_limit: Callable[[], int]
    """The largest body of a webhook's message."""
    hosts: frozenset[str] | None = None
    """Names by which the server may be addressed; None asks no such thing."""
    token: str | None = None
    """What has to be shown; None for a way in that others guard."""
    person: str = "unknown"
    """The name of who comes in without a token of their own."""
    name_of: Callable[[str], Awaitable[str | None]] = _no_name
    """Finds the name of the token that is shown; None for one that is not accepted."""
    only_hooks: bool = False
    """Whether this address accepts only webhooks."""
    takes_operations: bool = False
    """Whether commands may send their requests here, as they may on the socket."""
    chunk_patience_s: float = CHUNK_PATIENCE_S
    body_patience_s: float = BODY_PATIENCE_S


class Guard:
    """Lets pass what `door` allows, in the size it allows."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        try:
            await self._pass(scope, receive, answer)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "OTHER"
            if answer.status is not None:
                self._door.counters.requests[method, answer.status] += 1

    async def _pass(self, scope: Scope, receive: Receive, send: _Answer) -> None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = _unclear(scope, headers) or self._refusal(scope, headers)
        person = self._door.person
        if refusal is None and _needs_token(scope["path"]):
            found = await self._identify(headers)
            person, refusal = (found, None) if isinstance(found, str) else (person, found)
        if refusal is None:
            limit = self._limit(scope["path"])
            length = headers.get("content-length", "")
            if length.isdecimal() and int(length) > limit:
                await _discard(receive, self._door.chunk_patience_s)
                refusal = too_large(limit)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        scope = {**scope, PERSON: person}
        await self._app(scope, _Body(receive, self._limit(scope["path"]), self._door), send)

    def _limit(self, path: str) -> int:
        if is_answer_link(path):
            return LINK_BODY_LIMIT
        return self._door.hook_limit() if path.startswith(f"{HOOKS}/") else API_BODY_LIMIT

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        door, path = self._door, scope["path"]
        is_hook = _is_hook(path)
        if door.only_hooks and not is_hook and path != HEALTH:
            return closing(problem(404, "not_found", "this address accepts only webhooks"))
        if path == OPERATIONS and not door.takes_operations:
            return closing(
                problem(404, "not_found", "requests of commands are taken on the socket")
            )
        if is_hook:
            return None
        if door.hosts is not None:
            # The address a request arrived at is ours, and no page can make a name of its own out of it.
            hosts = door.hosts | {address_of(scope)}
            host, origin = host_of(headers.get("host", "")), headers.get("origin")
            if host not in hosts:
                text = f"host {host!r} is not allowed; add it to web.hosts"
                return closing(problem(403, "forbidden", text))
            if origin == "null" and is_answer_link(path):
                origin = None  # so browsers call a page that says where it is to nobody
            if origin is not None and host_of(origin.partition("://")[2]) not in hosts:
                text = f"pages of {origin!r} are not allowed; add its host to web.hosts"
                return closing(problem(403, "forbidden", text))
        return None

    async def _identify(self, headers: Mapping[str, str]) -> str | Response:
        """The name of who sent the request; a refusal when they show no token that is accepted."""
        door, shown = self._door, _shown_token(headers)
        if door.token is None and not (shown or "").startswith(TOKEN_PREFIX):
            return door.person  # only named tokens say more than the way in does
        if door.token is not None and shown is not None:
            is_same = hmac.compare_digest(shown.encode(), door.token.encode())
            if is_same:
                return door.person
        try:
            name = None if shown is None else await door.name_of(shown)
        except NightherdError as error:
            return closing(problem_of(error))
        if name is not None:
            return name
        said = "a token is needed" if shown is None else "this token is not accepted"
        answer = problem(401, "unauthorized", said, hint=ASK_SO)
        answer.headers["www-authenticate"] = "Bearer"
        return closing(answer)


def _is_hook(path: str) -> bool:
    return path.startswith(f"{HOOKS}/") and "/" not in path.removeprefix(f"{HOOKS}/")


def _needs_token(path: str) -> bool:
    return path != HEALTH and not _is_hook(path) and not is_answer_link(path)


def _unclear(scope: Scope, headers: Mapping[str, str]) -> Response | None:
    """Refuse a request whose end a proxy may see elsewhere than we do, or whose head is too large."""
    if "transfer-encoding" in headers and "content-length" in headers:
        message = "Content-Length and Transfer-Encoding must not be sent together"
        return closing(problem(400, "bad_request", message))
    size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    size += sum(len(name) + len(value) + len(b": \r\n") for name, value in scope["headers"])
    if size > LARGEST_HEAD:
        message = f"the request's head is larger than {LARGEST_HEAD:,} bytes"
        return closing(problem(431, "head_too_large", message))
    return None


METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


def host_of(header: str) -> str:
    """The name in a Host header, without its port and brackets."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def address_of(scope: Scope) -> str:
    """The address of this machine that the request arrived at; empty on a unix socket."""
    server = scope.get("server")
    return str(server[0]).lower() if server and server[1] is not None else ""


def closing(answer: Response) -> Response:
    """`answer`, after which the connection is closed: whatever else was sent is not read."""
    answer.headers.update(CLOSE)
    return answer


def too_large(limit: int) -> Response:
    """The answer to a body that is too large."""
    return closing(problem(413, "too_large", TOO_LARGE.format(limit)))


async def _discard(receive: Receive, patience_s: float) -> None:
    """Let a sender finish that is not far from it: many hear an answer only when they have said all."""
    size = 0
    with anyio.move_on_after(patience_s):
        while size < DISCARDED:
            message = await receive()
            size += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


def _shown_token(headers: Mapping[str, str]) -> str | None:
    """What is shown as a token; None where nothing is."""
    kind, _, shown = headers.get("authorization", "").partition(" ")
    return shown.strip() if kind.lower() == "bearer" else None


class _Body:
    """Receives a body of limited size, in limited time."""

    def __init__(self, receive: Receive, limit: int, door: Door) -> None:
        self._receive = receive
        self._limit = limit
        self._door = door
        self._size = 0
        self._is_whole = False
        self._deadline = anyio.current_time() + door.body_patience_s

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()
        left = self._deadline - anyio.current_time()
        with anyio.move_on_after(min(self._door.chunk_patience_s, max(left, 0))) as waiting:
            message = await self._receive()
        if waiting.cancelled_caught:
            raise HTTPException(408, "the body did not come in time", CLOSE)
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
        else:
            self._is_whole = True
        if self._size > self._limit:
            raise HTTPException(413, TOO_LARGE.format(self._limit), CLOSE)
        return message


class _Answer:
    """Sends on, and remembers the status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)
