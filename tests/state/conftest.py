"""What tests of state share: a state directory, and a server that forks workloads to kill."""

from __future__ import annotations

import json
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

    def begin(self, *orders: dict[str, Any]) -> list[int]:
        """Start them all at once; their pids."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(orders) + "\n")
        self._process.stdin.flush()
        return list(self._answer()["pids"])

    def finish(self) -> list[dict[str, Any]]:
        """Wait for all that were begun."""
        return list(self._answer())

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
    yield CrashServer(process)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait()
    process.stdout.close()
