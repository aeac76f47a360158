"""Access as documents: who is logged in, what they may do, and named tokens."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePath
from typing import TypedDict

from nightherd.model.access.role import Role, abilities
from nightherd.model.access.web import Web
from nightherd.model.agents.agent import Fleet
from nightherd.model.inbox.token import Token
from nightherd.model.text import utc_text
from nightherd.views.jobs.jobs import timestamp


class MeSettings(TypedDict):
    """How the dashboard shows transcripts."""

    tool_results: bool
    message_grouping: str


class MeDocument(TypedDict):
    """Who is logged in."""

    name: str
    role: Role
    expires_at: str | None
    version: str
    fleet: str
    base_path: str
    settings: MeSettings
    can: dict[str, bool]


class LoginDocument(TypedDict):
    """A browser that logged in: the secret is for its page, which sends it with every request."""

    secret: str
    name: str
    role: Role
    expires_at: str


class LoginCodeDocument(TypedDict):
    """A code that logs one browser in."""

    code: str
    url: str
    expires_at: str


class LogoutDocument(TypedDict):
    """How many browsers were logged out."""

    ended: int


class TokenRow(TypedDict):
    """A named token: nothing that it could be guessed from."""

    name: str
    role: Role
    created_at: str
    created_by: str
    revoked_at: str | None
    revoked_by: str | None


class UsedTokenRow(TokenRow):
    """A named token as the daemon knows it."""

    last_used_at: str | None
    """When it was last shown, or a browser that logged in with it; None: not since the daemon started."""


class NewTokenDocument(TokenRow):
    """A token that was just added, with the token itself: it is not shown again."""

    token: str


def me_document(
    name: str, role: Role, expires_at: datetime | None, fleet: Fleet, base_path: str, version: str
) -> MeDocument:
    """The person who asks, and what their page needs to begin with."""
    return MeDocument(
        name=name,
        role=role,
        expires_at=timestamp(expires_at),
        version=version,
        fleet=fleet_name(fleet),
        base_path=base_path,
        settings=_settings(fleet.web),
        can=abilities(role),
    )


def _settings(web: Web) -> MeSettings:
    return MeSettings(tool_results=web.tool_results, message_grouping=web.message_grouping)


def fleet_name(fleet: Fleet) -> str:
    """The fleet's name; of one without a name, that of its directory."""
    return fleet.name or PurePath(fleet.file).parent.name or "nightherd"


def token_row(token: Token) -> TokenRow:
    """A token as documents have it."""
    return TokenRow(
        name=token.name,
        role=token.role,
        created_at=utc_text(token.created_at),
        created_by=token.created_by,
        revoked_at=timestamp(token.revoked_at),
        revoked_by=token.revoked_by,
    )
