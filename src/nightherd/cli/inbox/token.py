"""`nightherd token`: named tokens, by which people prove who they are where they answer from elsewhere."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import anyio
import click

from nightherd.cli.inbox.answer import person
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import relative, table
from nightherd.engine.operations.tokens import add_token, revoke_token
from nightherd.errors import NotFoundError
from nightherd.model.access.role import Role
from nightherd.model.inbox.token import Token
from nightherd.views.people.access import token_row
from nightherd.wiring.machine import refuse_agents
from nightherd.wiring.stores import (
    init_state_directory,
    open_reader,
    open_store,
    random_text,
    system_clock,
)

HEADING = ("NAME", "ROLE", "ADDED", "BY", "STATUS")


@click.group(
    "token",
    cls=LazyGroup,
    entries={
        "add": Entry("nightherd.cli.inbox.token:add", "Add a named token."),
        "list": Entry("nightherd.cli.inbox.token:list_tokens", "List the tokens."),
        "revoke": Entry("nightherd.cli.inbox.token:revoke", "Revoke a token."),
    },
    default="list",
    epilog="Example: nightherd token add alice",
)
def token() -> None:
    """Add, list and revoke API access tokens. Answers with a token are recorded under its name."""


@click.command("add", epilog="Example: nightherd token add alice --role admin")
@click.argument("name", metavar="NAME")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default=Role.OPERATOR.value,
    show_default=True,
    help="How much it may do: read; also start, cancel and answer; or everything.",
)
@json_option
@click.pass_obj
def add(invocation: Invocation, name: str, role: str) -> None:
    """Add a named token. It is printed once; only its hash is kept."""
    state_dir = invocation.new_state_directory()
    refuse_agents(state_dir, "adding a token")
    by = _person(invocation)
    init_state_directory(state_dir)
    added, secret = anyio.run(_add, name, state_dir, by, Role(role))
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        screen.document("token", {**token_row(added), "token": secret}, now)
        return
    screen.show(secret)
    screen.flush()
    screen.say("it is not shown again; use it as NIGHTHERD_TOKEN, or as Authorization: Bearer")


@click.command("list", epilog="Example: nightherd token list")
@json_option
@click.pass_obj
def list_tokens(invocation: Invocation) -> None:
    """List the tokens. The tokens themselves are kept nowhere."""
    screen, now = invocation.screen, system_clock().now()
    with closing(open_reader(invocation.state_directory())) as reader:
        tokens = reader.list_tokens()
    if screen.is_json:
        screen.document("tokens", [token_row(one) for one in tokens], now)
        return
    if not tokens:
        screen.say("there are no tokens: nightherd token add NAME")
        return
    rows = [
        (
            one.name,
            one.role.value,
            relative(one.created_at, now),
            one.created_by,
            "active" if one.revoked_at is None else f"revoked by {one.revoked_by}",
        )
        for one in tokens
    ]
    screen.show(table(HEADING, rows, width=screen.width, style=screen.out))


@click.command("revoke", epilog="Example: nightherd token revoke alice")
@click.argument("name", metavar="NAME")
@json_option
@click.pass_obj
def revoke(invocation: Invocation, name: str) -> None:
    """Revoke a token. It is refused from now on; what was answered with it stays."""
    state_dir = invocation.state_directory()
    refuse_agents(state_dir, "revoking a token")
    with closing(open_reader(state_dir)) as reader:
        if name not in {one.name for one in reader.list_tokens()}:
            raise NotFoundError(f"there is no token {name!r}", hint="nightherd token list")
        by = person(invocation, reader)
    revoked = anyio.run(_revoke, name, state_dir, by)
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        screen.document("token", token_row(revoked), now)
        return
    screen.show(f"{revoked.name} revoked")


async def _add(name: str, state_dir: Path, by: str, role: Role) -> tuple[Token, str]:
    clock = system_clock()
    state = open_store(state_dir, clock)
    try:
        return await add_token(
            name, state, by=by, at=clock.now(), random_text=random_text(), role=role
        )
    finally:
        await state.close()


async def _revoke(name: str, state_dir: Path, by: str) -> Token:
    clock = system_clock()
    state = open_store(state_dir, clock)
    try:
        return await revoke_token(name, state, by=by, at=clock.now())
    finally:
        await state.close()


def _person(invocation: Invocation) -> str:
    with closing(open_reader(invocation.new_state_directory())) as reader:
        return person(invocation, reader)
