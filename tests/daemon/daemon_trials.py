"""A daemon as a trial of the fork server: it says what it does, and may be killed at any point."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio

from nightherd.daemon.fleet_files import FleetFiles
from nightherd.daemon.run import Post, run_daemon
from nightherd.engine.scheduling import SchedulingReports
from nightherd.engine.worker import WorkerReports
from nightherd.errors import NightherdError
from nightherd.testing.fork_process import Say


def run(order: Any, say: Say) -> None:
    """Run the fleet in `order["folder"]` until told to stop."""
    folder = Path(order["folder"])
    os.chdir(folder)
    environ = {**os.environ, **order.get("environ", {})}
    post = Post(
        files=FleetFiles(folder / "nightherd.yaml", environ, order.get("agents", ())),
        state_dir=folder / ".nightherd",
        environ=environ,
        worker=WorkerReports(
            on_start=lambda job: say(f"started {job.id}"),
            on_event=lambda job, event: None,
            on_end=lambda job: say(f"ended {job.id} {job.status}"),
            on_rescue=lambda job: say(f"rescued {job.id}"),
            on_trouble=lambda text: say(f"trouble {text}"),
        ),
        schedules=SchedulingReports(
            on_fire=lambda key, job: say(f"fired {key} {job}"),
            on_skip=lambda key, reason: say(f"skipped {key} {reason}"),
            on_trouble=lambda text: say(f"trouble {text}"),
        ),
        tell=lambda text: say(f"told {text}"),
        agents=tuple(order.get("agents", ())),
    )
    try:
        anyio.run(run_daemon, post)
    except NightherdError as error:
        say(f"refused {error.exit_code} {error.message}")
    else:
        say("done")
