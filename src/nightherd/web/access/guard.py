"""Guard: what stands before the API on every way in. What it does not let pass, nothing else sees.

On the unix socket the file's mode decides who may come. On a port a credential has to be shown (`identify.py`), and the
request has to be addressed to this server by a name it knows, and not come from a page of another origin
(`addressed.py`): so no page in a browser on the same machine can speak for its user. Messages of webhooks are signed
instead; the files of the dashboard are for everyone, and show nothing of the fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nightherd.errors import NightherdError
from nightherd.web.access.addressed import Addresses
from nightherd.web.access.caller import CALLER, Caller
from nightherd.web.access.identify import Identify, shown_token
from nightherd.web.access.security_headers import with_security_headers
from nightherd.web.bodies import LimitedBody, closing, discard, too_large
from nightherd.web.counters import Counters
from nightherd.web.hooks import PREFIX as HOOKS
from nightherd.web.problem import is_answer_link, problem, problem_of
from nightherd.web.slack import PREFIX as SLACK
from nightherd.web.socket_file import CODES, OPERATIONS

HEALTH = "/healthz"
METRICS = "/metrics"
API = "/v1"
LOGIN = "/v1/login"
WAY = "nightherd.way"
"""In the scope of a request: the `Identify` of the way it came in by."""
LARGEST_HEAD = 32 * 1024
"""Bytes of a request's target and headers."""
ASK_SO = (
    "Authorization: Bearer TOKEN, which is in .nightherd/web-token or what web.token_env names, or is a"
    " named one; a browser logs in with a one-time link or a token"
)
API_BODY_LIMIT = 4 * 1024 * 1024
LINK_BODY_LIMIT = 64 * 1024
"""Bytes of an answer that needs no token."""
IMPORT_FILE = "/v1/sessions/import/file"
"""Takes whole exported sessions, which are as long as what was said in them."""
IMPORT_FILE_LIMIT = 256 * 1024 * 1024
CHUNK_PATIENCE_S = 10.0
"""How long a sender may pause within a body."""
BODY_PATIENCE_S = 60.0
"""How long a whole body may take."""
IMPORT_FILE_PATIENCE = 10
"""How many times as long the file of a session may take."""
RECHECK_S = 15.0
"""How often the credential of an open stream is looked up again."""
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Who may come in by one way."""

    counters: Counters
    hook_limit: Callable[[], int]
    """The largest body of a webhook's message."""
    addresses: Addresses | None = None
    """How the server may be addressed; None asks no such thing."""
    identify: Identify = field(default_factory=Identify)
    only_hooks: bool = False
    """Whether this address accepts only messages that are signed by their sender."""
    takes_operations: bool = False
    """Whether commands may send their requests here, as they may on the socket."""
    chunk_patience_s: float = CHUNK_PATIENCE_S
    body_patience_s: float = BODY_PATIENCE_S
    recheck_s: float = RECHECK_S


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
            await self._pass(_below(scope, self._door.addresses), receive, answer)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "OTHER"
            if answer.status is not None:
                self._door.counters.requests[method, answer.status] += 1

    async def _pass(self, scope: Scope, receive: Receive, send: _Answer) -> None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = _unclear(scope, headers) or self._refusal(scope, headers)
        caller: Caller | None = None
        if refusal is None and needs_credential(scope["path"]):
            found = await self._identify(scope, headers)
            caller, refusal = (found, None) if isinstance(found, Caller) else (None, found)
        limit = self._limit(scope["path"])
        if refusal is None:
            length = headers.get("content-length", "")
            if length.isdecimal() and int(length) > limit:
                await discard(receive, self._door.chunk_patience_s)
                refusal = too_large(limit)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        door = self._door
        patience_s = door.body_patience_s
        if scope["path"] == IMPORT_FILE:
            patience_s *= IMPORT_FILE_PATIENCE
        body = LimitedBody(receive, limit, door.chunk_patience_s, patience_s)
        scope = {**scope, WAY: door.identify}
        if caller is None:
            await self._app(scope, body, send)
        elif "text/event-stream" in headers.get("accept", ""):
            await self._pass_while_known({**scope, CALLER: caller}, headers, body, send)
        else:
            await self._app({**scope, CALLER: caller}, body, send)

    async def _pass_while_known(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: _Answer
    ) -> None:
        """A stream ends when its credential expires, is revoked or was logged out."""
        is_unknown = False

        async def watch(cancel: Callable[[], None]) -> None:
            nonlocal is_unknown
            while not is_unknown:
                await anyio.sleep(self._door.recheck_s)
                found = await self._identify(scope, headers)
                is_unknown = not isinstance(found, Caller) and found.status_code in (401, 403)
            cancel()

        failure: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, tasks.cancel_scope.cancel)
            try:
                await self._app(scope, receive, send)
            except Exception as error:  # noqa: BLE001 (raised below, outside of the group)
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if is_unknown and send.status is not None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _limit(self, path: str) -> int:
        if is_answer_link(path):
            return LINK_BODY_LIMIT
        if path == IMPORT_FILE:
            return IMPORT_FILE_LIMIT
        return self._door.hook_limit() if path.startswith(f"{HOOKS}/") else API_BODY_LIMIT

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        door, path = self._door, scope["path"]
        is_hook = _is_hook(path)
        if door.only_hooks and not is_hook and path != HEALTH:
            return closing(problem(404, "not_found", "this address accepts only webhooks"))
        if path in (OPERATIONS, CODES) and not door.takes_operations:
            return closing(
                problem(404, "not_found", "requests of commands are taken on the socket")
            )
        if is_hook or door.addresses is None:
            return None
        text = _mistake(door.addresses, scope, headers)
        return None if text is None else closing(problem(403, "forbidden", text))

    async def _identify(self, scope: Scope, headers: Mapping[str, str]) -> Caller | Response:
        """The caller; a refusal without a credential that is accepted."""
        try:
            caller = await self._door.identify(scope, headers)
        except NightherdError as error:
            return closing(problem_of(error))
        if caller is not None:
            return caller
        shown = shown_token(headers)
        said = "a token or a login is needed" if shown is None else "this token is not accepted"
        answer = problem(401, "unauthorized", said, hint=ASK_SO)
        answer.headers["www-authenticate"] = "Bearer"
        return closing(answer)


def _mistake(addresses: Addresses, scope: Scope, headers: Mapping[str, str]) -> str | None:
    """Why a request that is addressed so, or comes from such a page, is refused."""
    if not addresses.takes_plain(scope):
        return "unencrypted requests are taken from this machine and from web.trusted_proxy only"
    place, origin = addresses.place(scope, headers), headers.get("origin")
    host = place[1]
    if not addresses.knows(host, scope):
        return f"host {host!r} is not allowed; add it to web.hosts"
    if origin == "null" and is_answer_link(scope["path"]):
        origin = None  # so browsers call a page that says where it is to nobody
    if origin is not None and not addresses.allows(origin, place):
        return (
            f"pages of {origin!r} are not allowed: scheme, host and port must be those of this server"
            " (see web.public_url and web.trusted_proxy for one behind a proxy)"
        )
    return None


def _below(scope: Scope, addresses: Addresses | None) -> Scope:
    """The scope of a request below the base path, as if it were served at the root."""
    base, path = addresses.base_path if addresses is not None else "", scope["path"]
    if not base or not (path == base or path.startswith(f"{base}/")):
        return scope
    raw = scope.get("raw_path") or path.encode()
    return {
        **scope,
        "path": path[len(base) :] or "/",
        "raw_path": raw.removeprefix(base.encode()) or b"/",
    }


def _is_hook(path: str) -> bool:
    """Whether messages that are signed by their sender arrive there."""
    return any(
        path.startswith(f"{prefix}/") and "/" not in path.removeprefix(f"{prefix}/")
        for prefix in (HOOKS, SLACK)
    )


def is_api(path: str) -> bool:
    """Whether the path is one of the API, and not of the dashboard's files."""
    return path in (API, HEALTH, METRICS) or path.startswith(f"{API}/") or is_answer_link(path)


def needs_credential(path: str) -> bool:
    """Whether only a caller that is known may ask for the path."""
    is_open = path in (HEALTH, LOGIN) or _is_hook(path) or is_answer_link(path)
    return is_api(path) and not is_open


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


class _Answer:
    """Sends on with the headers that every answer has, and remembers the status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": with_security_headers(message.get("headers", ()))}
        await self._send(message)
