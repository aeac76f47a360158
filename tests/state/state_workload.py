"""A workload on a state directory, for processes that are killed while they carry it out."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from nightherd.model.change import Applied, Change
from nightherd.model.jobs.changes import SubmitJob
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.state_values import settle, start, submit

LANES = 3
WORKLOAD = f"{__name__}:work"


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
    say(f"{name} {job} {outcome}")


async def workload(order: dict[str, Any], say: Say) -> None:
    ending = order.get("signal", signal.SIGKILL)
    probe = Ending(order.get("point", ""), nth=order.get("nth", 0), ending=ending)
    store = SqliteStore(Path(order["root"]), FakeClock(), probe, outbox_limit=4)
    numbers = range(order["first"], order["first"] + order["count"])
    async with anyio.create_task_group() as group:
        for own in range(LANES):
            group.start_soon(lane, store, list(numbers[own::LANES]), say, order.get("keys"))
    await store.close()


def work(order: dict[str, Any], say: Say) -> None:
    """Submit, start and settle `count` jobs in several lanes; say each change that was acknowledged."""
    anyio.run(partial(workload, order, say))
