"""A browser as the server sees one: a cookie, the secret of its page, and the headers that pages send."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nightherd.engine.operations.tokens import add_token
from nightherd.model.access.role import Role
from nightherd.model.access.web import Web
from nightherd.model.agents.agent import Fleet
from nightherd.web.api_context import ApiContext
from nightherd.web.page import UI
from nightherd.web.ports import Port, ports_of
from nightherd.wiring.stores import random_text
from web.web_world import ENVIRON, Answer, World, free_port, served, write_fleet


def on_port(
    directory: Path,
    fleet: Fleet | None = None,
    *,
    recheck_s: float = 15.0,
    ui: Path = UI,
    environ: Mapping[str, str] = ENVIRON,
    **keys: Any,
) -> Any:
    """A served fleet whose API is on a port of this machine, with the dashboard of `ui`; `keys` are of `web`."""
    settings = {"enabled": True, "host": "127.0.0.1", "port": free_port(), **keys}
    found = replace(fleet or write_fleet(directory), web=Web(**settings))
    state = directory / ".nightherd"

    def make_ports(site: ApiContext) -> list[Port]:
        (port,) = ports_of(found, site, state, random_text())
        return [dataclasses.replace(port, door=dataclasses.replace(port.door, recheck_s=recheck_s))]

    return served(directory, fleet=found, make_ports=make_ports, ui=ui, environ=environ)


def origin_of(world: World) -> str:
    return f"http://127.0.0.1:{world.ports[0]}"


def from_page(world: World, **more: str) -> dict[str, str]:
    """The headers of a request that a page of this server sends."""
    return {"origin": origin_of(world), "sec_fetch_site": "same-origin", **more}


async def new_code(world: World) -> str:
    """A login code, as `nightherd open` gets it."""
    answer = await world.post("/v1/login/codes")
    assert answer.status == 200, answer.body
    return str(answer.data["code"])


async def log_in(world: World, path: str = "/v1/login", **what: str) -> Answer:
    """Log a browser in with a code or a token."""
    return await world.ask("POST", path, what, port=world.ports[0], **from_page(world))


def login_headers(world: World, login: Answer) -> dict[str, str]:
    """What a page sends after the login."""
    cookie = login.headers["set-cookie"].partition(";")[0]
    return from_page(world, cookie=cookie, x_nightherd_secret=str(login.data["secret"]))


async def logged_in(world: World) -> dict[str, str]:
    """The headers of a page whose browser has logged in with a code."""
    login = await log_in(world, code=await new_code(world))
    assert login.status == 200, login.body
    return login_headers(world, login)


async def named_token(world: World, name: str, role: Role = Role.ADMIN) -> str:
    context = world.site.context
    _, secret = await add_token(
        name,
        context.state,
        by="owner",
        at=context.clock.now(),
        random_text=random_text(),
        role=role,
    )
    return secret
