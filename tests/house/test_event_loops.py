"""A browser that waits for the next test keeps no other test, nor a fixture of any scope, from an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest


async def answer() -> int:
    return 42


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
async def browser(anyio_backend: str) -> AsyncIterator[str]:
    async with anyio.create_task_group():
        yield "waits"


@pytest.fixture(scope="session")
def of_the_session(browser: str) -> int:
    return anyio.run(answer)


@pytest.fixture(scope="module")
def of_the_module(browser: str) -> int:
    return anyio.run(answer)


@pytest.fixture
def of_the_test(browser: str) -> int:
    return anyio.run(answer)


def test_fixtures_of_every_scope_and_their_test_start_loops(
    of_the_session: int, of_the_module: int, of_the_test: int
) -> None:
    assert [of_the_session, of_the_module, of_the_test, anyio.run(answer)] == [42] * 4
