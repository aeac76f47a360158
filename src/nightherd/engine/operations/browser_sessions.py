"""Logging browsers in and out. A browser keeps a cookie and its page a secret; only their hashes are recorded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from nightherd.errors import RefusedError
from nightherd.model.access.browser_session import (
    AddBrowserSession,
    BrowserSession,
    EndBrowserSessions,
)
from nightherd.model.change import Refused
from nightherd.model.ids import RandomText
from nightherd.model.inbox.token import SECRET_LENGTH, secret_hash
from nightherd.model.push.subscription import EndPushSubscriptions, PushEnd
from nightherd.ports import StateWriter


class NewLogin(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that logged in, and what it is given: neither is kept here."""

    session: BrowserSession
    cookie: str
    secret: str


async def log_in(
    person: str,
    state: StateWriter,
    *,
    at: datetime,
    lifetime: timedelta,
    random_text: RandomText,
    token_hash: str | None = None,
) -> NewLogin:
    """Record a browser of the person. `token_hash` is of the token it logged in with, if it was one."""
    cookie, secret = random_text(SECRET_LENGTH), random_text(SECRET_LENGTH)
    session = BrowserSession(
        id=secret_hash(cookie),
        secret_hash=secret_hash(secret),
        person=person,
        token_hash=token_hash,
        created_at=at,
        expires_at=at + lifetime,
    )
    (answer,) = await state.apply([AddBrowserSession(session=session)])
    if isinstance(answer, Refused):
        raise RefusedError(answer.message)
    return NewLogin(session=session, cookie=cookie, secret=secret)


async def log_out(
    ids: Iterable[str], state: StateWriter, *, at: datetime, everywhere: str | None = None
) -> None:
    """End the browser sessions, and the devices that were subscribed in them.

    `everywhere` is a person who logs out all browsers: devices of logins that expired end too.
    """
    change = EndBrowserSessions(ids=tuple(ids), at=at)
    if change.ids or everywhere is not None:
        devices = EndPushSubscriptions(
            session_ids=change.ids, logins_of=everywhere, at=at, reason=PushEnd.LOGGED_OUT
        )
        await state.apply([change, devices])
