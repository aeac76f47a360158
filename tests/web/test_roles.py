"""Roles: every endpoint declares the one it needs, and a caller without it is refused before anything happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastapi.routing import APIRoute

from nightherd.model.access.role import Role
from nightherd.web.access.caller import PUBLIC, declared_role
from nightherd.web.access.guard import HEALTH, LOGIN, needs_credential
from nightherd.web.server import OPENAPI, make_app
from web.browser import named_token, on_port
from web.web_world import served

OPEN = {
    ("GET", HEALTH),
    ("POST", LOGIN),
    ("POST", "/v1/hooks/{name}"),
    ("POST", "/v1/slack/{agent}"),
}
OPEN |= {(method, "/answer/{secret}") for method in ("GET", "POST")}
READING = {"GET", "HEAD"}


def every_route(router: Any) -> Iterator[Any]:
    for route in router.routes:
        included = getattr(route, "original_router", None)
        yield from (route,) if included is None else every_route(included)


def routes_of(app: Any) -> list[APIRoute]:
    """Every route of the app; no other kind of route may show anything of the fleet."""
    routes = list(every_route(app))
    others = {route.path for route in routes if not isinstance(route, APIRoute)}
    assert others == {OPENAPI}
    return [route for route in routes if isinstance(route, APIRoute)]


def methods_of(route: APIRoute) -> set[str]:
    return (route.methods or set()) - {"HEAD"}


def test_every_endpoint_declares_the_role_it_needs(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            routes = routes_of(make_app(world.site))

        silent = [route.path for route in routes if declared_role(route.endpoint) is None]
        assert len(routes) > 40
        assert silent == [], "write @needs(Role.VIEWER) or another role above the endpoint"

    anyio.run(main)


def test_only_what_shows_nothing_or_has_its_own_secret_is_open(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            routes = routes_of(make_app(world.site))

        opened = {
            (method, route.path)
            for route in routes
            for method in methods_of(route)
            if declared_role(route.endpoint) == PUBLIC
        }
        assert opened == OPEN
        for route in routes:
            path = route.path.replace("{name}", "x").replace("{secret}", "x")
            assert needs_credential(path) == (declared_role(route.endpoint) != PUBLIC)

    anyio.run(main)


def test_a_viewer_reads_and_does_nothing_else(tmp_path: Path) -> None:
    """Each endpoint in turn, with a viewer's token: what does not only read is refused."""

    async def main() -> None:
        async with on_port(tmp_path) as world:
            token = f"Bearer {await named_token(world, 'vera', Role.VIEWER)}"
            for route in routes_of(make_app(world.site)):
                (method,) = methods_of(route)
                role = declared_role(route.endpoint)
                if role == PUBLIC or route.path in ("/v1/operations", "/v1/login/codes"):
                    continue
                path = route.path.replace("{", "").replace("}", "")
                answer = await world.ask(
                    method, path, None, port=world.ports[0], authorization=token
                )
                is_refused = answer.status == 403 and answer.document["code"] == "forbidden"
                assert is_refused == (role is not Role.VIEWER), (method, path, answer.body)
                if method not in READING and route.path not in OWN:
                    assert is_refused, (method, path)

    anyio.run(main)


DEVICES = "/v1/push/subscriptions"
OWN = {
    "/v1/logout",
    "/v1/visit",
    DEVICES,
    f"{DEVICES}/{{subscription}}",
    f"{DEVICES}/{{subscription}}/test",
}
"""What a viewer may do about itself."""


@pytest.mark.parametrize(
    ("role", "statuses"),
    [(Role.VIEWER, (403, 403)), (Role.OPERATOR, (201, 403)), (Role.ADMIN, (201, 200))],
)
def test_operators_start_jobs_and_admins_change_schedules(
    tmp_path: Path, role: Role, statuses: tuple[int, int]
) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            token = f"Bearer {await named_token(world, 'somebody', role)}"
            port, job = world.ports[0], {"agent": "hello", "prompt": "x"}
            started = await world.ask("POST", "/v1/jobs", job, port=port, authorization=token)
            changed = await world.ask(
                "POST", "/v1/schedules/hello/nightly/disable", port=port, authorization=token
            )
            jobs = (await world.get("/v1/jobs")).data

            assert (started.status, changed.status) == statuses
            assert len(jobs) == (started.status == 201)
            if role is Role.VIEWER:
                said = started.document["detail"]
                assert said == "this needs the role operator; somebody is a viewer"

    anyio.run(main)


def test_a_token_shown_on_the_socket_has_its_own_role(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            secret = await named_token(world, "vera", Role.VIEWER)
            job = {"agent": "hello", "prompt": "x"}
            refused = await world.post("/v1/jobs", job, authorization=f"Bearer {secret}")
            taken = await world.post("/v1/jobs", job)

            assert (refused.status, taken.status) == (403, 201)

    anyio.run(main)
