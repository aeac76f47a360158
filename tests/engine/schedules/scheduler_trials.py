"""A scheduler as a trial of the fork server: only that, no worker beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio

from nightherd.engine.schedules.scheduler import Scheduler, SchedulingReports
from nightherd.testing.fork_process import Say
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker


def schedule(order: Any, say: Say) -> None:
    """Fire what is due in `order["folder"]` until killed; the start waits for the others."""
    folder = Path(order["folder"])
    fleet = load_fleet(folder / "nightherd.yaml", environ={}, cwd=folder).fleet

    async def work() -> None:
        async with open_worker(folder / ".nightherd", fleet, os.environ) as context:
            reports = SchedulingReports(
                on_fire=lambda key, job: say(f"fired {key} {job}"),
                on_trouble=lambda text: say(f"trouble {text}"),
            )
            say("ready")
            await Scheduler(fleet, context, reports).run()

    anyio.run(work)
