"""A worker to be killed: a process of its own that runs one command in a container."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from runtimes.container.container_stage import LONG_S, Boxes
from runtimes.keeper.kept_worker import is_whole, wait_until


@contextmanager
def container_worker(
    boxes: Boxes, command: str, *, lease_s: float = LONG_S
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that runs `command`; `container_of` says where, once it does."""
    orders = [str(boxes.root), boxes.socket, boxes.image, boxes.fleet, command, lease_s]
    worker = subprocess.Popen(
        [sys.executable, __file__, json.dumps(orders)],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def container_of(boxes: Boxes) -> str:
    """The id of the container in which the worker's command runs."""
    wait_until(lambda: is_whole(boxes.root / "container"))
    return (boxes.root / "container").read_text().strip()


async def work(boxes: Boxes, command: str, lease_s: float) -> None:
    """Run the command to its end."""
    async with boxes.opened(lease_s=lease_s) as box, box.kept("bash", "-c", command) as process:
        (boxes.root / "container").write_text(f"{box.id}\n")
        await process.wait()


if __name__ == "__main__":
    root, *names, command, lease_s = json.loads(sys.argv[1])
    anyio.run(work, Boxes(Path(root), *names), command, lease_s)
