"""The event loop that a browser keeps between tests is nobody else's: what is not async may start one of its own.

A plugin: pytest asks no `conftest.py` below the top about fixtures of the whole session.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator

import pytest
import sniffio


@pytest.fixture(autouse=True)
def outside_of_event_loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that is not async may start an event loop, also where one waits for the next test in a browser."""
    if inspect.iscoroutinefunction(request.function):
        yield
        return
    token = sniffio.current_async_library_cvar.set(None)
    yield
    sniffio.current_async_library_cvar.reset(token)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """So may a fixture of many tests, which is set up before any of them."""
    made = fixturedef.func
    # What `outside_of_event_loops` sets has to outlast its own set-up.
    is_ours = fixturedef.argname == "outside_of_event_loops"
    if is_ours or inspect.iscoroutinefunction(made) or inspect.isasyncgenfunction(made):
        return (yield)
    token = sniffio.current_async_library_cvar.set(None)
    try:
        return (yield)
    finally:
        sniffio.current_async_library_cvar.reset(token)
