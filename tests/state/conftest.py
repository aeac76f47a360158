"""What tests of state share: a state directory, and a server that forks workloads to kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nightherd.state.directory import StateDirectory, init_state_directory


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    """A new state directory."""
    return init_state_directory(tmp_path / ".nightherd")


class CrashServer:
    """Runs workloads in forked processes: each says what was acknowledged, and how it ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._begun: list[int] = []

    def begin(self, *orders: dict[str, Any]) -> list[int]:
        """Start them all at once; their pids."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(orders) + "\n")
        self._process.stdin.flush()
        self._begun = list(self._answer()["pids"])
        return self._begun

    def finish(self) -> list[dict[str, Any]]:
        """Wait for all that were begun."""
        ended = list(self._answer())
        self._begun = []
        return ended

    def end(self) -> None:
        """Leave nothing behind, also of a trial that failed half-way."""
        for pid in self._begun:
            os.kill(pid, signal.SIGKILL)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, *orders: dict[str, Any]) -> list[dict[str, Any]]:
        """Start them all at once and wait for all."""
        self.begin(*orders)
        return self.finish()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="module")
def crash_server() -> Iterator[CrashServer]:
    """One server for all trials of a module."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("crash_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    server = CrashServer(process)
    yield server
    server.end()
