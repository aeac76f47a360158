"""A worker to be killed: a process of its own that runs one command under a keeper, and eyes on what becomes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

import anyio

from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.process import KeptProcess, kept_process

PATIENCE_S = 60


@dataclass(frozen=True)
class Orders:
    """What the worker does: run `command` and, once it runs, beat so many times.

    Each beat is good for `lease_s`, and until the first one comes there is `first_s`.
    """

    command: str
    directory: str
    execution: str
    grace_s: float = 0.2
    first_s: float | None = None
    lease_s: float = 0.0
    margin_s: float = 0.1
    beats: int = 0
    holds_input: bool = False


class KeptWorker:
    """A running worker; its command and keeper are known by their pids."""

    def __init__(self, orders: Orders) -> None:
        self.directory = Path(orders.directory)
        self.process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(asdict(orders))],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def pids(self) -> tuple[int, int]:
        """The command's and the keeper's, once it has started."""
        wait_until(lambda: is_whole(self.directory / "kept.json"))
        command, keeper = json.loads((self.directory / "kept.json").read_text())
        return command, keeper

    def pid_in(self, name: str) -> int:
        """The one a process of the command has written down; the worker has noted the others by then too."""
        self.pids()
        wait_until(lambda: is_whole(self.directory / name))
        return int((self.directory / name).read_text())

    def ending(self) -> dict[str, object]:
        """How the command ended, as the worker was told."""
        wait_until(lambda: is_whole(self.directory / "ending.json"))
        ending = json.loads((self.directory / "ending.json").read_text())
        assert isinstance(ending, dict)
        return ending


@contextmanager
def kept_worker(orders: Orders) -> Iterator[KeptWorker]:
    """A worker that is not left behind when its test fails."""
    worker = KeptWorker(orders)
    try:
        yield worker
    finally:
        worker.process.kill()
        worker.process.wait()


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits for what another process does; the end of patience is a failure."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def is_whole(path: Path) -> bool:
    """Whether a whole line stands in the file."""
    return path.exists() and path.read_text().endswith("\n")


def is_there(pid: int) -> bool:
    """Whether there is such a process, be it only not yet reaped."""
    return Path(f"/proc/{pid}").exists()


async def beat(keepers: Keepers, orders: Orders) -> None:
    """So many signs of life, and then none."""
    for _ in range(orders.beats):
        keepers.send_heartbeat(time.monotonic() + orders.lease_s)
        await anyio.sleep((orders.lease_s - orders.margin_s) / 10)


async def work(orders: Orders) -> None:
    """Run the command to its end."""
    directory = Path(orders.directory)
    keepers = Keepers(margin_s=orders.margin_s)
    lease = None if orders.first_s is None else time.monotonic() + orders.first_s
    async with anyio.create_task_group() as tasks:
        async with kept_process(
            ["sh", "-c", orders.command],
            cwd=directory,
            env={"PATH": os.environ["PATH"]},
            execution=orders.execution,
            stdin=subprocess.PIPE if orders.holds_input else subprocess.DEVNULL,
            holds_input=orders.holds_input,
            stdout=subprocess.DEVNULL,
            stderr=2,
            grace=timedelta(seconds=orders.grace_s),
            lease=lease,
            keepers=keepers,
        ) as process:
            write_down(directory / "kept.json", pids_of(process))
            tasks.start_soon(beat, keepers, orders)
            ending = await process.wait()
        tasks.cancel_scope.cancel()
    write_down(directory / "ending.json", asdict(ending))


def pids_of(process: KeptProcess) -> tuple[int, int]:
    return process.pid, process.keeper_pid


def write_down(path: Path, value: object) -> None:
    path.write_text(json.dumps(value) + "\n")


if __name__ == "__main__":
    anyio.run(work, Orders(**json.loads(sys.argv[1])))
