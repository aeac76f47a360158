"""Named tokens: added, revoked, and read from what a person shows."""

from __future__ import annotations

from datetime import datetime

from nightherd.errors import ForbiddenError, NotFoundError, RefusedError
from nightherd.model.access.role import Role
from nightherd.model.change import Refused, Why
from nightherd.model.ids import RandomText
from nightherd.model.inbox.token import (
    AddToken,
    RevokeToken,
    Token,
    make_token,
    parse_token_name,
    secret_hash,
)
from nightherd.ports import InboxReader, StateWriter

TOKEN_VARIABLE = "NIGHTHERD_TOKEN"  # noqa: S105 - the name of a variable


async def add_token(
    name: str,
    state: StateWriter,
    *,
    by: str,
    at: datetime,
    random_text: RandomText,
    role: Role = Role.OPERATOR,
) -> tuple[Token, str]:
    """Add a token of that name; return it, and the text to show once. `RefusedError` when the name is in use."""
    secret = make_token(random_text)
    token = Token(
        name=parse_token_name(name),
        hash=secret_hash(secret),
        created_at=at,
        created_by=by,
        role=role,
    )
    (answer,) = await state.apply([AddToken(token=token)])
    if isinstance(answer, Refused):
        raise RefusedError(answer.message)
    return token, secret


async def revoke_token(name: str, state: StateWriter, *, by: str, at: datetime) -> Token:
    """Accept the token no longer. `NotFoundError` without one, `RefusedError` for one that is revoked."""
    (answer,) = await state.apply([RevokeToken(name=name, by=by, at=at)])
    if isinstance(answer, Refused):
        kind = NotFoundError if answer.why is Why.MISSING else RefusedError
        raise kind(answer.message)
    return next(row for row in answer.rows if isinstance(row, Token))


def person_with(token: str, reader: InboxReader) -> str:
    """Return the name of the token that a person shows; `ForbiddenError` for one that is not accepted."""
    found = reader.find_token(secret_hash(token))
    if found is None:
        raise ForbiddenError("this token is not accepted; it was never added, or was revoked")
    return found.name
