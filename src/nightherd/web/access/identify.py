"""Identify: find the caller of a request by its credential.

A token in `Authorization` is shown on purpose. A cookie, and the name that a proxy adds, are sent by a browser for
any page: they count only for a page of the same origin, and a cookie only together with the secret of its page.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from starlette.types import Scope

from nightherd.errors import ForbiddenError
from nightherd.model.access.browser_session import BrowserSession
from nightherd.model.access.role import Role
from nightherd.model.access.web import Web
from nightherd.model.inbox.token import RESERVED, TOKEN_PREFIX, Token, secret_hash
from nightherd.web.access.addressed import Addresses
from nightherd.web.access.caller import Caller

COOKIE = "nightherd_session"
SECRET_HEADER = "x-nightherd-secret"  # noqa: S105 - the name of a header
SAME_ORIGIN = "same-origin"
LONGEST_NAME = 200


class Credentials(Protocol):
    """Looks credentials up."""

    async def find_token(self, hash: str) -> Token | None:
        """The token with that hash that is accepted."""

    async def find_browser_session(self, hash: str) -> BrowserSession | None:
        """The browser session whose cookie has that hash."""

    def now(self) -> datetime:
        """The time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identify:
    """Finds callers on one way in."""

    credentials: Credentials | None = None
    """None knows no named tokens and no browsers."""
    token: str | None = None
    """The fleet's own token; None for a way in that others guard."""
    person: str = "unknown"
    """The name of a caller without a name of its own."""
    person_of: Callable[[Scope], str | None] | None = None
    """Finds the name of the process at the other end, where the way in tells."""
    addresses: Addresses = field(default_factory=Addresses)
    web: Web = field(default_factory=Web)

    async def __call__(self, scope: Scope, headers: Mapping[str, str]) -> Caller | None:
        """The caller; None without a credential that is accepted. `ForbiddenError` for a page of another origin."""
        shown = shown_token(headers)
        if self.token is None and not (shown or "").startswith(TOKEN_PREFIX):
            # Only named tokens say more than the way in does.
            return Caller(name=self._name(scope), role=Role.ADMIN)
        if shown is not None:
            return await self._by_token(secret_hash(shown))
        by_cookie = await self._by_cookie(scope, headers)
        return by_cookie or self._by_proxy(scope, headers)

    def _name(self, scope: Scope) -> str:
        found = None if self.person_of is None else self.person_of(scope)
        return found or self.person

    async def _by_token(self, hash: str) -> Caller | None:
        if self.token is not None and hmac.compare_digest(hash, secret_hash(self.token)):
            return Caller(name=self.person, role=Role.ADMIN, token_hash=hash)
        token = None if self.credentials is None else await self.credentials.find_token(hash)
        if token is None:
            return None
        return Caller(name=token.name, role=token.role, token_hash=hash)

    async def by_login(self, token: str) -> Caller | None:
        """The caller who logs in with a token."""
        return await self._by_token(secret_hash(token))

    async def _by_cookie(self, scope: Scope, headers: Mapping[str, str]) -> Caller | None:
        secret = headers.get(SECRET_HEADER, "")
        cookies = cookies_of(scope, headers)
        if self.credentials is None or not secret or not cookies:
            return None
        for cookie in cookies:
            session = await self.credentials.find_browser_session(secret_hash(cookie))
            if session is None or not hmac.compare_digest(secret_hash(secret), session.secret_hash):
                continue
            caller = await self._of_session(session)
            if caller is not None:
                refuse_other_pages(headers)
                return caller
        return None

    async def _of_session(self, session: BrowserSession) -> Caller | None:
        if self.credentials is None or session.ended_at is not None:
            return None
        if session.expires_at <= self.credentials.now():
            return None
        caller: Caller | None = Caller(name=session.person, role=Role.ADMIN)
        if session.token_hash is not None:
            caller = await self._by_token(session.token_hash)
        if caller is None:
            return None
        return Caller(
            name=caller.name,
            role=caller.role,
            session_id=session.id,
            token_hash=session.token_hash,
            expires_at=session.expires_at,
        )

    def _by_proxy(self, scope: Scope, headers: Mapping[str, str]) -> Caller | None:
        header = self.web.identity_header
        if header is None or not self.addresses.trusts(scope):
            return None
        names = [value for name, value in scope["headers"] if name == header.encode()]
        if len(names) != 1:
            return None  # of two, one was not the proxy's
        name = names[0].decode("utf-8", "replace").strip()
        if not name or len(name) > LONGEST_NAME or not name.isprintable() or name in RESERVED:
            return None
        role = self.web.role_of(name)
        if role is None:
            raise ForbiddenError(
                f"{name} has no role here", hint="an admin can add the name to web.people"
            )
        refuse_other_pages(headers)
        return Caller(name=name, role=role, is_proxied=True)


def refuse_other_pages(headers: Mapping[str, str]) -> None:
    """`ForbiddenError` unless the browser says that a page of this very origin sent the request."""
    site = headers.get("sec-fetch-site")
    if site != SAME_ORIGIN:
        sent = "no Sec-Fetch-Site" if site is None else f"Sec-Fetch-Site: {site}"
        raise ForbiddenError(
            f"the request was sent with {sent}; with a login of a browser it must be same-origin",
            hint="programs use Authorization: Bearer TOKEN",
        )


def shown_token(headers: Mapping[str, str]) -> str | None:
    """What is shown as a token; None where nothing is."""
    kind, _, shown = headers.get("authorization", "").partition(" ")
    return shown.strip() if kind.lower() == "bearer" else None


def cookie_name(scope: Scope) -> str:
    """The name of the cookie. Browsers send a cookie to every port of a host, so each port has its own."""
    server = scope.get("server")
    return f"{COOKIE}_{server[1]}" if server and server[1] is not None else COOKIE


def cookies_of(scope: Scope, headers: Mapping[str, str]) -> list[str]:
    """What the browser sends as our cookie: several where servers below different paths share a host."""
    wanted, found = cookie_name(scope), []
    for part in headers.get("cookie", "").split(";"):
        name, equals, value = part.strip().partition("=")
        if equals and name == wanted and value:
            found.append(value)
    return found[:4]
