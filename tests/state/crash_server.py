"""A process that forks workloads on a state directory and tells how they ended.

Everything is imported before the first fork, so that a trial costs milliseconds. Each line of standard
input is an order; the answer to it is one line on standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from nightherd.model.change import Applied, Change, SubmitJob
from nightherd.state.store import SqliteStore
from nightherd.testing.clock import FakeClock
from nightherd.testing.state_values import settle, start, submit

LANES = 3

Say = Callable[[str], None]


class Ending:
    """A probe that sends this process a signal when it comes to a point for the n-th time."""

    def __init__(self, point: str | None, nth: int, ending: int) -> None:
        self._point, self._left, self._ending = point, nth, ending

    def __call__(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                # To this thread, so that it does not run on until another has taken the signal.
                signal.pthread_kill(threading.get_ident(), self._ending)


async def lane(store: SqliteStore, numbers: list[int], say: Say, keys: int | None) -> None:
    for number in numbers:
        await step(store, "submit", with_key(submit(number), number, keys), say)
        await step(store, "start", start(number), say)
        await step(store, "settle", settle(number), say)


def with_key(change: SubmitJob, number: int, keys: int | None) -> SubmitJob:
    if keys is None:
        return change
    return replace(change, job=replace(change.job, dedupe_key=f"key-{number % keys}"))


async def step(store: SqliteStore, name: str, change: Change, say: Say) -> None:
    (answer,) = await store.apply([change])
    job = change.job.id if isinstance(change, SubmitJob) else getattr(change, "job_id")  # noqa: B009
    outcome = "applied" if isinstance(answer, Applied) else answer.why.value
    say(f"{name} {job} {outcome}\n")


async def workload(order: dict[str, Any], say: Say) -> None:
    probe = Ending(order.get("point"), order.get("nth", 0), order.get("signal", signal.SIGKILL))
    store = SqliteStore(Path(order["root"]), FakeClock(), probe, outbox_limit=4)
    numbers = range(order["first"], order["first"] + order["count"])
    async with anyio.create_task_group() as group:
        for own in range(LANES):
            group.start_soon(lane, store, list(numbers[own::LANES]), say, order.get("keys"))
    await store.close()


def child(order: dict[str, Any], pipe: int) -> None:
    status = 0
    try:
        anyio.run(partial(workload, order, lambda text: void(os.write(pipe, text.encode()))))
    except BaseException:  # noqa: BLE001 - told to the test, which fails on it
        os.write(pipe, f"error {traceback.format_exc()!r}\n".encode())
        status = 1
    os._exit(status)


def void(_: object) -> None:
    """Nothing to give."""


def begin(order: dict[str, Any]) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        child(order, writing)
    os.close(writing)
    return pid, reading


def finish(pid: int, reading: int) -> dict[str, Any]:
    with os.fdopen(reading) as said:
        lines = said.read().splitlines()
    _, status = os.waitpid(pid, 0)
    return {"said": lines, "status": os.waitstatus_to_exitcode(status)}


def main() -> None:
    for line in sys.stdin:
        begun = [begin(order) for order in json.loads(line)]
        print(json.dumps({"pids": [pid for pid, _ in begun]}), flush=True)
        print(json.dumps([finish(pid, reading) for pid, reading in begun]), flush=True)


if __name__ == "__main__":
    main()
