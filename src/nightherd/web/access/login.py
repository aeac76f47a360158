"""`/v1/login`, `/v1/logout` and `/v1/me`: browsers log in with a one-time code or a token.

A login gives the browser a cookie that its pages cannot read, and the page a secret that other pages cannot read.
Both are needed afterwards. A cookie alone is not enough: browsers send it to every port of a host.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field, StringConstraints, model_validator

from nightherd.engine.operations.browser_sessions import log_in, log_out
from nightherd.errors import InvalidValueError, RefusedError
from nightherd.model.access.role import Role
from nightherd.model.access.web import dashboard_url
from nightherd.model.inbox.token import secret_hash
from nightherd.model.text import utc_text
from nightherd.views.people.access import (
    LoginCodeDocument,
    LoginDocument,
    LogoutDocument,
    MeDocument,
    me_document,
)
from nightherd.web.access.addressed import client_of, network_of
from nightherd.web.access.caller import Caller, FromCaller, needs, public
from nightherd.web.access.guard import LOGIN, WAY
from nightherd.web.access.identify import Identify, cookie_name, refuse_other_pages
from nightherd.web.access.login_codes import LIFETIME_S
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.operations import FromSender
from nightherd.web.problem import problem
from nightherd.web.requests import Body
from nightherd.web.socket_file import CODES

NOT_ENABLED = "set web.enabled: true in the fleet file"
Secret = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]

router = APIRouter(tags=["access"])


class Login(Body):
    """What a browser logs in with: exactly one."""

    code: Secret | None = Field(
        None, description="One-time code, as in the link that the command line makes."
    )
    token: Secret | None = Field(None, description="A named token, or the fleet's own.")

    @model_validator(mode="after")
    def is_one(self) -> Login:
        """Exactly one is given."""
        if (self.code is None) == (self.token is None):
            raise ValueError("give either a code or a token")
        return self


class Logout(Body):
    """Which browsers are logged out."""

    everywhere: bool = Field(False, description="Log out all browsers of the person.")


def way_of(request: Request) -> Identify:
    """The way that the request came in by."""
    way = request.scope.get(WAY)
    return way if isinstance(way, Identify) else Identify()


@router.post(
    LOGIN,
    responses=answers("login", LoginDocument, 409, 429),
)
@public
async def login(site: OnSite, sender: FromSender, request: Request, body: Login) -> Response:
    """Log a browser in. The answer sets its cookie, and has the `secret` that its page sends as `X-Nightherd-Secret`.

    A login code works once and for a minute. After ten failures in a row a client has to wait.
    """
    if "sec-fetch-site" in request.headers:
        refuse_other_pages(request.headers)  # before the code is used up
    way, clock = way_of(request), site.context.clock
    client = network_of(client_of(request.scope, request.headers, way.addresses))
    wait_s = site.failed_logins.count(client, clock.monotonic())
    if wait_s > 0:
        answer = problem(429, "too_many_logins", "too many failed logins; wait a moment")
        answer.headers["retry-after"] = str(math.ceil(wait_s))
        return answer
    if body.code is not None:
        await sender.must_be_person("log in with a code")
    caller = await _find(site, way, body)
    if caller is None:
        said = (
            "this token is not accepted"
            if body.token is not None
            else "this login code is not valid: it was used, or is older than a minute"
        )
        return problem(
            401,
            "unauthorized",
            said,
            hint="make a new link on the command line of the daemon's machine",
        )
    site.failed_logins.forgive(client)
    web = site.fleet().web
    done = await log_in(
        caller.name,
        site.context.state,
        at=clock.now(),
        lifetime=timedelta(hours=web.session_expiry_hours),
        random_text=site.context.random_text,
        token_hash=None if body.token is None else secret_hash(body.token),
    )
    data = LoginDocument(
        secret=done.secret,
        name=caller.name,
        role=caller.role,
        expires_at=utc_text(done.session.expires_at),
    )
    answer = document("login", data, clock.now())
    age = int(web.session_expiry_hours * 3600)
    answer.headers["set-cookie"] = _cookie(request, way, done.cookie, age)
    return answer


@router.post("/v1/logout", responses=answers("logout", LogoutDocument))
@needs(Role.VIEWER)
async def logout(
    site: OnSite, request: Request, caller: FromCaller, body: Logout | None = None
) -> Response:
    """Log this browser out, or with `everywhere` all browsers of the person. Their devices get no more pushes."""
    is_everywhere = body is not None and body.everywhere
    ids = [] if caller.session_id is None else [caller.session_id]
    if is_everywhere:
        open_sessions = await site.ask(lambda reader: reader.browser_sessions_of(caller.name))
        ids = [session.id for session in open_sessions]
    now = site.context.clock.now()
    person = caller.name if is_everywhere else None
    await log_out(ids, site.context.state, at=now, everywhere=person)
    answer = document("logout", LogoutDocument(ended=len(ids)), now)
    answer.headers["set-cookie"] = _cookie(request, way_of(request), "", 0)
    return answer


@router.post(CODES, include_in_schema=False)
@needs(Role.ADMIN)
async def make_code(site: OnSite, sender: FromSender, caller: FromCaller) -> Response:
    """A code that logs one browser in as the user of this machine who asks; served on the socket only."""
    await sender.must_be_person("log in to the dashboard")
    web = site.fleet().web
    if not web.enabled or not site.ports:
        raise RefusedError("the dashboard is not served on a port", hint=NOT_ENABLED)
    clock = site.context.clock
    code = site.login_codes.make(caller.name, clock.monotonic(), site.context.random_text)
    data = LoginCodeDocument(
        code=code,
        url=f"{dashboard_url(web, site.ports[0])}#code={code}",
        expires_at=utc_text(clock.now() + timedelta(seconds=LIFETIME_S)),
    )
    return document("login_code", data, clock.now())


@router.get(
    "/v1/me",
    responses=answers(
        "me",
        MeDocument,
    ),
)
@needs(Role.VIEWER)
async def me(site: OnSite, request: Request, caller: FromCaller) -> Response:
    """Who asks, in which role, until when, and what the dashboard needs to begin with."""
    data = me_document(
        caller.name,
        caller.role,
        caller.expires_at,
        site.fleet(),
        way_of(request).addresses.base_path,
        site.context.version,
    )
    return document("me", data, site.context.clock.now())


async def _find(site: ApiContext, way: Identify, body: Login) -> Caller | None:
    """Who logs in; None for a code or token that is not accepted."""
    if body.token is not None:
        return await way.by_login(body.token)
    if body.code is None:
        raise InvalidValueError("give either a code or a token")
    person = site.login_codes.take(body.code, site.context.clock.monotonic())
    return None if person is None else Caller(name=person, role=Role.ADMIN)


def _cookie(request: Request, way: Identify, value: str, age_s: int) -> str:
    """The cookie that logs the browser in, or out when it is empty."""
    scheme = way.addresses.place(request.scope, request.headers)[0]
    parts = [
        f"{cookie_name(request.scope)}={value}",
        f"Path={way.addresses.base_path or '/'}",
        f"Max-Age={age_s}",
        "HttpOnly",
        "SameSite=Strict",
    ]
    return "; ".join([*parts, "Secure"] if scheme == "https" else parts)
