"""Tokens and answer links: by what people on other surfaces prove who they are. Only hashes are kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from nightherd.errors import InvalidValueError
from nightherd.model.access.role import Role
from nightherd.model.ids import NAME, NAME_LIMIT, RandomText
from nightherd.model.inbox.item import InboxItem, ItemId

TOKEN_PREFIX = "nht_"  # noqa: S105 - how tokens begin
SECRET_LENGTH = 52
"""Characters of a token or link: as many possibilities as 32 random bytes have."""
WEB_PERSON = "web"
"""Who answers with the fleet's one web token, which has no name of its own."""
RESERVED = frozenset({WEB_PERSON, "nightherd", "unknown"})
LINK_LIFETIME = timedelta(days=7)


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A named token: who shows it answers under this name."""

    name: str
    hash: str
    """SHA-256 of the token, in hex. The token itself is shown once and kept nowhere."""
    created_at: datetime
    created_by: str
    revoked_at: datetime | None = None
    revoked_by: str | None = None
    role: Role = Role.ADMIN
    """Tokens that were added before there were roles are an admin's."""


class AnswerLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link by which one person answers one item, once."""

    id: str
    """SHA-256 of the secret in the link, in hex."""
    item_id: ItemId
    approver: str
    """Under which name the answer is recorded."""
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None


class AddToken(msgspec.Struct, frozen=True, kw_only=True):
    """Add a token. A name that was revoked may be used again, with another token."""

    token: Token


class RevokeToken(msgspec.Struct, frozen=True, kw_only=True):
    """Accept the token of that name no longer."""

    name: str
    by: str
    at: datetime


class MakeLink(msgspec.Struct, frozen=True, kw_only=True):
    """Add an answer link. Refused for an item that does not wait, or whose approvers are others."""

    link: AnswerLink


def make_token(random_text: RandomText) -> str:
    """Return a new token."""
    return TOKEN_PREFIX + random_text(SECRET_LENGTH)


def secret_hash(secret: str) -> str:
    """Return what is kept of a token or of the secret in a link."""
    return sha256(secret.strip().encode(errors="surrogatepass")).hexdigest()


def parse_token_name(text: str) -> str:
    """`text` as the name of a token, or `InvalidValueError`."""
    if len(text) > NAME_LIMIT or NAME.fullmatch(text) is None:
        raise InvalidValueError(
            f"{text!r} is not a name for a token; use letters, digits, _ and -, at most {NAME_LIMIT}"
        )
    if text in RESERVED:
        raise InvalidValueError(f"the name {text!r} is used by nightherd itself; choose another")
    return text


def link_expiry(item: InboxItem, at: datetime) -> datetime:
    """Return when a link to the item that is made at `at` expires: with the item, else after 7 days."""
    return item.expires_at if item.expires_at is not None else at + LINK_LIFETIME
