"""Caller: who sent a request and in which role, as its credential says. Nothing in a body changes it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from nightherd.errors import ForbiddenError
from nightherd.model.access.role import Role

CALLER = "nightherd.caller"
"""In the scope of a request: its `Caller`."""
ROLE = "nightherd_role"
"""On an endpoint: the role that it needs."""
PUBLIC = "public"
"""Instead of a role: the endpoint needs none, or checks its own secret."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who sent a request."""

    name: str
    role: Role
    session_id: str | None = None
    """The browser session it came in; None for a token or the socket."""
    token_hash: str | None = None
    """Hash of the token that was shown, or that the browser logged in with."""
    is_proxied: bool = False
    """Whether a reverse proxy named the caller."""
    expires_at: datetime | None = None
    """When the browser has to log in again."""


NOBODY = Caller(name="unknown", role=Role.VIEWER)


def caller_of(request: Request) -> Caller:
    """The caller as the guard found it."""
    caller = request.scope.get(CALLER, NOBODY)
    assert isinstance(caller, Caller)  # noqa: S101 (the guard puts nothing else there)
    return caller


FromCaller = Annotated[Caller, Depends(caller_of)]
"""What an endpoint asks for that depends on who calls."""


def needs(role: Role) -> Callable[[FunctionT], FunctionT]:
    """Declare the role that an endpoint needs."""

    def declare(function: FunctionT) -> FunctionT:
        setattr(function, ROLE, role)
        return function

    return declare


def public(function: FunctionT) -> FunctionT:
    """Declare that an endpoint needs no role: it shows nothing of the fleet, or checks a secret of its own."""
    setattr(function, ROLE, PUBLIC)
    return function


def declared_role(endpoint: Any) -> Role | str | None:
    """The role that an endpoint declares, `PUBLIC`, or None for an endpoint that declares nothing."""
    found = getattr(endpoint, ROLE, None)
    return found if isinstance(found, Role | str) else None


def check_role(request: Request) -> None:
    """`ForbiddenError` for a caller without the role that the endpoint needs; one that declares none is an admin's."""
    needed = declared_role(request.scope.get("endpoint"))
    if needed == PUBLIC:
        return
    if CALLER not in request.scope:
        raise HTTPException(401, "a token or a login is needed")
    role = needed if isinstance(needed, Role) else Role.ADMIN
    require(caller_of(request), role)


def require(caller: Caller, role: Role) -> None:
    """`ForbiddenError` unless the caller has the role."""
    if not caller.role.includes(role):
        raise ForbiddenError(
            f"this needs the role {role.value}; {caller.name} is {_article(caller.role)}",
            hint=f"ask an admin for a token with the role {role.value}",
        )


def _article(role: Role) -> str:
    return f"{'a' if role is Role.VIEWER else 'an'} {role.value}"
