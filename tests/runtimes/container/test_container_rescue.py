"""Rescue of containers whose engine is in trouble: it is asked once, and holds up no job longer than that."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from nightherd.model.ids import ExecutionId
from nightherd.runtimes.container.rescue import ContainerRecord, end_containers, write_record


@pytest.fixture
def hung() -> Iterator[socket.socket]:
    """An engine that takes connections and never answers."""
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/s")
        listener.listen()
        listener.setblocking(False)
        yield listener


def connections(listener: socket.socket) -> int:
    count = 0
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


def test_engine_that_hangs_is_asked_once_for_all_its_containers(
    tmp_path: Path, hung: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightherd.runtimes.container.rescue.CALL_S", 0.2)
    executions = [ExecutionId(f"job-2026-01-01-aaaaa{number}.1") for number in range(3)]
    for execution in executions:
        folder = tmp_path / execution
        (folder / "run").mkdir(parents=True)
        record = ContainerRecord(name=execution, socket=hung.getsockname(), execution=execution)
        write_record(folder, record)

    left = anyio.run(end_containers, tmp_path, executions)

    assert left == {}, "process 1 of none of them answers"
    assert connections(hung) == 1
