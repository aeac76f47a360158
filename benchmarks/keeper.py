"""What a keeper costs a command, and how long after the worker's death the command is gone.

CPU and wall time of `sh -c true`, bare and kept, interleaved; minima, for a busy machine only adds. The
keeper is compared with a bare interpreter because starting one is most of what it does.
"""

from __future__ import annotations

import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import anyio

from nightherd.runtimes.keeper.process import kept_process

ROUNDS = 40
KILLS = 10
CPU_LIMIT_MS = 15
ENVIRONMENT = {"PATH": os.environ["PATH"]}
COMMAND = ["/bin/sh", "-c", "true"]
INTERPRETER = [sys.executable, "-I", "-S", "-c", "pass"]
WORKER = """
import anyio, sys
from nightherd.runtimes.keeper.process import kept_process
async def work():
    script = "setsid sleep 1000 & echo $$ $!; wait"
    async with kept_process(["sh", "-c", script], cwd="/", env={"PATH": sys.argv[1]}, execution="bench") as process:
        print(process.keeper_pid, (await process.stdout.receive()).decode(), flush=True)
        await process.wait()
anyio.run(work)
"""


async def kept(argv: list[str]) -> None:
    async with kept_process(argv, cwd="/", env=ENVIRONMENT, execution="bench") as process:
        await process.wait()


async def bare(argv: list[str]) -> None:
    process = await anyio.open_process(
        argv, stdin=subprocess.DEVNULL, cwd="/", env=ENVIRONMENT, start_new_session=True
    )
    async with process:
        await process.wait()


def cpu() -> float:
    """User and system time of every child that has been waited for."""
    times = os.times()
    return times.children_user + times.children_system


async def measure() -> dict[str, tuple[float, float]]:
    """Milliseconds of CPU and of wall time for each way: the mean and the least over all rounds."""
    ways: dict[str, tuple[Callable[[list[str]], Awaitable[None]], list[str]]] = {
        "bare command": (bare, COMMAND),
        "kept command": (kept, COMMAND),
        "bare interpreter": (bare, INTERPRETER),
    }
    used = dict.fromkeys(ways, 0.0)
    least = dict.fromkeys(ways, float("inf"))
    for number in range(ROUNDS + 1):
        for name, (run, argv) in ways.items():
            cpu_before, before = cpu(), time.perf_counter()
            await run(argv)
            if number > 0:  # the first start compiles the byte code
                used[name] += (cpu() - cpu_before) / ROUNDS * 1000
                least[name] = min(least[name], (time.perf_counter() - before) * 1000)
    return {name: (used[name], least[name]) for name in ways}


def time_to_gone() -> float:
    """Milliseconds from SIGKILL of a worker until command, daemon and keeper have ended."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, ENVIRONMENT["PATH"]], stdout=subprocess.PIPE, text=True
    ) as worker:
        if worker.stdout is None:
            raise SystemExit("there is no pipe to read from")
        watches = [os.pidfd_open(int(pid)) for pid in worker.stdout.readline().split()]
        before = time.perf_counter()
        worker.kill()
        for watch in watches:
            select.select([watch], [], [])
            os.close(watch)
        return (time.perf_counter() - before) * 1000


def main() -> None:
    """Prints what both ways take, and the ratio."""
    found = anyio.run(measure)
    for name, (cpu_ms, wall_ms) in found.items():
        print(f"{name} takes {cpu_ms:.1f} ms of CPU and at least {wall_ms:.1f} ms")
    gone = [time_to_gone() for _ in range(KILLS)]
    extra = found["kept command"][0] - found["bare command"][0] - found["bare interpreter"][0]
    ratio = found["kept command"][1] / found["bare interpreter"][1]
    print(
        f"CPU of a keeper over a bare interpreter: {max(extra, 0.0):.1f} ms (limit {CPU_LIMIT_MS} ms)"
    )
    print(
        f"kept command over bare command: {found['kept command'][1] / found['bare command'][1]:.1f}x"
    )
    print(f"kept command over bare interpreter: {ratio:.1f}x (limit 4x)")
    print(f"worker killed to tree gone (median): {statistics.median(gone):.1f} ms (limit 200 ms)")


if __name__ == "__main__":
    main()
