"""Processes that do one thing to a run, all at the same moment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio

from nightherd.engine.operations.run_requests import StartWorkflow
from nightherd.engine.operations.runs import start_workflow
from nightherd.model.change import Applied, Change
from nightherd.model.workflows.conductor.changes import MergeScratch
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.run_values import answer, end, gate_of, instant, job_of
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_fleet_context
from nightherd.wiring.stores import open_repair

MERGE = f"{__name__}:merge"
START = f"{__name__}:start"
APPLY = f"{__name__}:apply_one"


def merge(order: dict[str, Any], say: Say) -> None:
    """Write one key of the run's scratch."""

    async def work() -> None:
        number = int(order["key"][1:])
        values = {order["key"]: number * [number]}
        async with open_repair(Path(order["state"])) as record:
            change = MergeScratch(run_id=order["run"], at=instant(1), values=values)
            (answer,) = await record.state.apply([change])
        assert isinstance(answer, Applied), answer

    anyio.run(work)


def start(order: dict[str, Any], say: Say) -> None:
    """Start a run, and say which and whether it is new."""
    folder = Path(order["folder"])

    async def work() -> None:
        fleet = load_fleet(folder / "nightherd.yaml", environ={}, cwd=folder).fleet
        request = StartWorkflow(workflow=order["workflow"], by="hook", dedupe_key=order["key"])
        async with open_fleet_context(folder / ".nightherd", fleet, os.environ) as context:
            started = await start_workflow(request, context)
        say(f"{started.run.id} {started.is_new}")

    anyio.run(work)


def apply_one(order: dict[str, Any], say: Say) -> None:
    """End the job of a phase, or approve a gate of it, killed when the store comes to a point."""

    async def work() -> None:
        root = Path(order["state"])
        reader = SqliteReader(root)
        change: Change
        if "gate" in order:
            change = answer(gate_of(reader, 1, order["gate"]))
        else:
            job = job_of(reader, 1, order["phase"])
            change = end(job, epoch=job.epoch)
        reader.close()
        store = SqliteStore(root, FakeClock(), Ending(order["point"]))
        await store.apply([change])

    anyio.run(work)
