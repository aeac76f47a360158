"""Fixtures with a fork server that has imported what a daemon imports: one for all tests of a worker."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from daemon.pasture import TARGET, Pasture
from nightherd.testing.fork_server import ForkServer


@pytest.fixture(scope="session")
def prepared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Has everything imported that a daemon imports on its way to the end of a first job."""
    with ForkServer(patience_s=120) as server:
        pasture = Pasture(tmp_path_factory.mktemp("first"), server)
        loaded = pasture.folder / "loaded"
        daemon = pasture.daemon(loaded=str(loaded))
        pasture.wait_until_said(daemon, "ended")
        daemon.send(signal.SIGTERM)
        assert daemon.wait().said[-1] == "done"
        server.load(*json.loads(loaded.read_text()), "built_models")
        yield server


@pytest.fixture
def daemon_server(prepared_server: ForkServer) -> Iterator[ForkServer]:
    """No daemon outlives its test."""
    yield prepared_server
    prepared_server.begin(TARGET)  # none, and so whatever still runs ends
