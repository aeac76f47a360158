"""Fixtures for tests in a real browser: Chromium, fleets with daemons, people who visit them, and a hostile site."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from browser.chromium import running_chromium
from browser.fleet_world import AGENTS, FleetWorld
from browser.hostile_site import HostileSite, serving_hostile_site
from browser.looks import is_left_out
from browser.probe_site import ProbeSite, serving_probe
from browser.visitor import Visitors
from components import Components
from nightherd.testing.fork_server import ForkServer

EXPECT_MS = 30_000
"""How long a page may take to show what a test expects."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one look of each test of `every_look`; all of them in `make soak`."""
    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        items[:] = [item for item in items if not is_left_out(item)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Playwright needs asyncio, and one event loop for as long as the browser runs."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def chromium_is_here(components: Components) -> None:
    """Without a browser, nothing else is started for these tests. A loaded machine is no failure of a page."""
    components.program("chromium")
    expect.set_options(timeout=EXPECT_MS)


@pytest.fixture(scope="session")
async def chromium(anyio_backend: str, components: Components) -> AsyncIterator[Browser]:
    """One browser for all tests of a worker. Each visitor gets a profile of their own in it."""
    async with running_chromium(components) as browser:
        yield browser


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> None:
    """What people visit in this test is there before they come, and still there when they leave."""
    for name in ("daemon_server", "fleet", "probe"):
        if name in request.fixturenames:
            request.getfixturevalue(name)


@pytest.fixture
async def visit(hosts: None, chromium: Browser) -> AsyncIterator[Visitors]:
    """Lets people visit a fleet. At its end the test fails for whatever their browsers complained about."""
    visitors = Visitors(chromium)
    yield visitors
    await visitors.leave()


@pytest.fixture
def new_fleet(tmp_path: Path, daemon_server: ForkServer) -> Callable[..., FleetWorld]:
    """Makes a fleet whose daemon is not started yet: what it has to find is written first."""

    def make(**options: Any) -> FleetWorld:
        return FleetWorld(tmp_path, daemon_server, **options)

    return make


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> FleetWorld:
    """A fleet at work, with the agents that the module names in `FLEET_AGENTS`: one for each test, or a shared one."""
    is_shared = request.node.get_closest_marker("shared_fleet") is not None
    world: FleetWorld = request.getfixturevalue("shared_fleet" if is_shared else "own_fleet")
    return world


@pytest.fixture
async def own_fleet(
    request: pytest.FixtureRequest, new_fleet: Callable[..., FleetWorld]
) -> FleetWorld:
    """A fleet in which nothing has happened yet."""
    world = new_fleet(agents=getattr(request.module, "FLEET_AGENTS", AGENTS))
    await world.start()
    return world


@pytest.fixture(scope="module")
async def shared_fleet(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    prepared_server: ForkServer,
    chromium: Browser,
) -> AsyncIterator[FleetWorld]:
    """A fleet that lasts as long as the tests of a module do."""
    agents = getattr(request.module, "FLEET_AGENTS", AGENTS)
    folder = tmp_path_factory.mktemp("shared")
    world = FleetWorld(folder, prepared_server, agents=agents, stays=True)
    await world.start()
    yield world
    await world.close()


@pytest.fixture
async def probe(tmp_path: Path) -> AsyncIterator[ProbeSite]:
    """A fleet whose dashboard is a page of the test's own."""
    async with serving_probe(tmp_path, recheck_s=0.2) as site:
        yield site


@pytest.fixture
def hostile_site() -> Iterator[HostileSite]:
    """A site on another port of the host that fleets are served on."""
    with serving_hostile_site() as site:
        yield site
