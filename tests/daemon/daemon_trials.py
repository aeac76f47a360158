"""A daemon as a trial of the fork server: it says what it does, and may be killed at any point."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from nightherd.daemon.fleet_files import FleetFiles
from nightherd.daemon.retention import FIRST_S
from nightherd.daemon.run import run_daemon
from nightherd.daemon.worker_command import Place, Relay
from nightherd.daemon.worker_service import DaemonOptions
from nightherd.engine.notifications import deliver
from nightherd.engine.schedules.scheduler import SchedulingReports
from nightherd.engine.workers.worker import WorkerReports
from nightherd.errors import NightherdError
from nightherd.testing.fork_process import Say
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import make_worker_loop, open_worker


def run(order: Any, say: Say) -> None:
    """Run the fleet in `order["folder"]` until told to stop, or only a worker of it."""
    folder = Path(order["folder"])
    os.chdir(folder)
    while order.get("waits_for") and not (folder / order["waits_for"]).exists():
        time.sleep(0.02)
    if order.get("is_worker"):
        anyio.run(work, folder, say)
        return
    if order.get("is_relay"):
        anyio.run(relay, folder, say)
        return
    if "claim_margin_s" in order:
        # How long the next daemon leaves a claim alone. This process, which ends soon, has its own.
        setattr(deliver, "LEASE_MARGIN", timedelta(seconds=order["claim_margin_s"]))  # noqa: B010
    environ = {**os.environ, **order.get("environ", {})}
    post = DaemonOptions(
        files=FleetFiles(folder / "nightherd.yaml", environ, order.get("agents", ())),
        state_dir=folder / ".nightherd",
        environ=environ,
        worker=reports(say),
        schedules=SchedulingReports(
            on_fire=lambda key, job: say(f"fired {key} {job}"),
            on_skip=lambda key, reason: say(f"skipped {key} {reason}"),
            on_trouble=lambda text: say(f"trouble {text}"),
        ),
        report=lambda text: say(f"told {text}"),
        agents=tuple(order.get("agents", ())),
        retention_after_s=order.get("retention_after_s", FIRST_S),
    )
    try:
        anyio.run(run_daemon, post)
    except NightherdError as error:
        say(f"refused {error.exit_code} {error.message}")
    else:
        say("done")
    if "loaded" in order:
        names = [name for name in sys.modules if name != "__main__"]
        Path(order["loaded"]).write_text(json.dumps(names))


async def work(folder: Path, say: Say) -> None:
    """A worker until it is told to stop."""
    fleet = load_fleet(folder / "nightherd.yaml", environ=os.environ, cwd=folder).fleet
    async with open_worker(folder / ".nightherd", fleet, os.environ) as context:
        await make_worker_loop(fleet, context, reports(say), leaves_when_idle=False).work()


async def relay(folder: Path, say: Say) -> None:
    """Workers one after the other, as `nightherd worker` has them."""
    fleet = load_fleet(folder / "nightherd.yaml", environ=os.environ, cwd=folder).fleet
    place = Place(
        state_dir=folder / ".nightherd",
        environ=os.environ,
        leaves_when_idle=False,
        reports=reports(say),
        report=lambda text: say(f"told {text}"),
    )
    await Relay(place, fleet).work()


def reports(say: Say) -> WorkerReports:
    return WorkerReports(
        on_start=lambda job: say(f"started {job.id}"),
        on_event=lambda job, event: None,
        on_end=lambda job: say(f"ended {job.id} {job.status}"),
        on_rescue=lambda job: say(f"rescued {job.id}"),
        on_trouble=lambda text: say(f"trouble {text}"),
    )
