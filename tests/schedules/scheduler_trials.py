"""A scheduler as a trial of the fork server: only that, no worker beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio

from nightherd.config.load import load_fleet
from nightherd.engine.scheduling import Scheduler, SchedulingReports
from nightherd.testing.fork_process import Say
from nightherd.wiring.workshops import open_workshop


def schedule(order: Any, say: Say) -> None:
    """Fire what is due in `order["folder"]` until killed; the start waits for the others."""
    folder = Path(order["folder"])
    fleet = load_fleet(folder / "nightherd.yaml", environ={}, cwd=folder).fleet

    async def work() -> None:
        async with open_workshop(folder / ".nightherd", fleet, os.environ) as workshop:
            reports = SchedulingReports(
                on_fire=lambda key, job: say(f"fired {key} {job}"),
                on_trouble=lambda text: say(f"trouble {text}"),
            )
            say("ready")
            await Scheduler(fleet, workshop, reports).run()

    anyio.run(work)
