"""`/v1/tokens`: named tokens and their roles, for admins."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import Field

from nightherd.engine.operations.tokens import add_token, revoke_token
from nightherd.model.access.role import Role
from nightherd.views.jobs.jobs import timestamp
from nightherd.views.people.access import NewTokenDocument, TokenRow, UsedTokenRow, token_row
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.documents import answers, document
from nightherd.web.operations import FromPerson, FromSender
from nightherd.web.requests import Body, Line

router = APIRouter(prefix="/v1/tokens", tags=["access"])


class NewToken(Body):
    """A named token."""

    name: Line = Field(description="Name under which its owner acts.")
    role: Role = Field(Role.OPERATOR, strict=False, description="What its owner may do.")


@router.get("", responses=answers("tokens", list[UsedTokenRow]))
@needs(Role.ADMIN)
async def list_tokens(site: OnSite) -> Response:
    """Every token that was ever added, by name. The tokens themselves are kept nowhere.

    `last_used_at` is known since the daemon started.
    """
    tokens = await site.ask(lambda reader: reader.list_tokens())
    used = site.counters.tokens_used
    rows = [
        UsedTokenRow(**token_row(token), last_used_at=timestamp(used.get(token.hash)))
        for token in tokens
    ]
    return document("tokens", rows, site.context.clock.now())


@router.post("", status_code=201, responses=answers("token", NewTokenDocument, 409, status=201))
@needs(Role.ADMIN)
async def add(site: OnSite, sender: FromSender, person: FromPerson, body: NewToken) -> Response:
    """Add a token. The answer has the `token` itself, this once; only its hash is kept."""
    await sender.must_be_person("add a token")
    now = site.context.clock.now()
    token, secret = await add_token(
        body.name,
        site.context.state,
        by=person,
        at=now,
        random_text=site.context.random_text,
        role=body.role,
    )
    data = NewTokenDocument(**token_row(token), token=secret)
    return document("token", data, now, status=201)


@router.delete("/{name}", responses=answers("token", TokenRow, 404, 409))
@needs(Role.ADMIN)
async def revoke(site: OnSite, sender: FromSender, person: FromPerson, name: str) -> Response:
    """Revoke a token: it is refused from now on, and browsers that logged in with it are out."""
    await sender.must_be_person("revoke a token")
    now = site.context.clock.now()
    token = await revoke_token(name, site.context.state, by=person, at=now)
    return document("token", token_row(token), now)
