"""The real `claude`, from the package that brings it, and a turn at one of two slots to run it."""

from __future__ import annotations

import fcntl
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import pytest

from components import Components
from runtimes.claude.claude_stage import ClaudeStage, make_stage
from soak import often

SLOTS = 2
"""How many tests run `claude` at once, whatever the number of cores: more of them are slower than these."""
RUNTIMES = ("cli", "sdk")
PER_TEST = often(1, soak=len(RUNTIMES))
"""How many runtimes a test marked `either_runtime` runs under."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one runtime of each test marked `either_runtime`, chosen by its name; all of them in `make soak`."""
    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        items[:] = [item for item in items if not is_left_out(item)]
        config.hook.pytest_deselected(items=left_out)


def is_left_out(item: pytest.Item) -> bool:
    if PER_TEST > 1 or item.get_closest_marker("either_runtime") is None:
        return False
    assert isinstance(item, pytest.Function)
    name = re.sub(rf"\b({'|'.join(RUNTIMES)})\b", "", item.nodeid)
    chosen = RUNTIMES[zlib.crc32(name.encode()) % len(RUNTIMES)]
    return bool(item.callspec.params["stage"] != chosen)


@pytest.fixture
def slot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One of the slots, until the test is over."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    shared = tmp_path_factory.getbasetemp().parent
    with ExitStack() as opened:
        places = [shared / f"claude-slot-{number}" for number in range(SLOTS)]
        take_one([opened.enter_context(place.open("w")) for place in places], int(worker))
        yield


def take_one(locks: list[TextIO], worker: int) -> None:
    """Whichever is free; while none is, the worker waits for the one that it shares with the fewest."""
    for lock in locks:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return
    fcntl.flock(locks[worker % len(locks)], fcntl.LOCK_EX)


@pytest.fixture(params=RUNTIMES)
def stage(
    tmp_path: Path, components: Components, slot: None, request: pytest.FixtureRequest
) -> ClaudeStage:
    """An empty place to run the real `claude` in, once for each way of talking to it."""
    return make_stage(tmp_path, components.claude(), request.param)


@pytest.fixture
def cli_stage(tmp_path: Path, components: Components, slot: None) -> ClaudeStage:
    """The same for what only the user's own `claude` does."""
    return make_stage(tmp_path, components.claude())


@pytest.fixture
def sdk_stage(tmp_path: Path, components: Components, slot: None) -> ClaudeStage:
    """The same for what only the SDK does."""
    return make_stage(tmp_path, components.claude(), "sdk")
