"""The real command line, and the engine going on with a lost job, in processes killed on their way."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from crash.power_recording import Recording
from crash.system_calls import probe_system_calls
from nightherd import ports
from nightherd.cli import doctor
from nightherd.cli.jobs import actions as run
from nightherd.cli.main import main
from nightherd.engine.doctor.record import apply_changes, list_jobs, recollected
from nightherd.engine.jobs.lost_execution import change_after_loss
from nightherd.engine.jobs.runner import run_job
from nightherd.journal import files
from nightherd.mirror import checkup, follower
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import Event
from nightherd.ports import Probe
from nightherd.runtimes.scripted import runtime as scripted
from nightherd.state import repair as checks
from nightherd.state import repair as mending
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_repair

LOADED = (doctor, run, files, checkup, follower, scripted, checks, mending)
"""What commands import on first use, so that no trial has to."""

COMMAND = f"{__name__}:command"
GO_ON = f"{__name__}:go_on"
RECORDED = f"{__name__}:recorded_command"


def command(order: dict[str, Any], say: Say) -> None:
    """Run `arguments` in the folder; what the command shows goes to the file `shown`."""
    os.chdir(order["folder"])
    shown = os.open(order["shown"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(shown, stream)
    # By lines, so that what a person has been shown is in the file when the process is killed.
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    set_probe(order, say)
    code = main(order["arguments"])
    sys.stdout.flush()
    sys.stderr.flush()
    if "loaded" in order:
        names = [name for name in sys.modules if name != "__main__"]
        Path(order["loaded"]).write_text(json.dumps(names))
    os._exit(code)


def go_on(order: dict[str, Any], say: Say) -> None:
    """Give up every job that runs by its row, and run those that then wait, to their end, maybe all at once."""
    os.chdir(order["folder"])
    set_probe(order, say)
    anyio.run(_go_on, Path(order["folder"]), bool(order.get("is_together")))


async def _go_on(folder: Path, is_together: bool) -> None:
    fleet = load_fleet(folder / "nightherd.yaml", environ=os.environ, cwd=folder).fleet
    state = folder / ".nightherd"
    async with open_repair(state) as record:
        for job in list(list_jobs(record.reader, JobStatus.RUNNING)):
            lost = change_after_loss(job, recollected(record, job.id), record, max_restarts=9)
            await apply_changes(record, [lost])
    async with open_worker(state, fleet, os.environ) as context:
        waiting = list(list_jobs(context.reader, JobStatus.PENDING))
        async with anyio.create_task_group() as tasks:
            for job in waiting:
                run = partial(run_job, job.id, fleet.agents[job.agent], context, on_event=_no_one)
                if is_together:
                    tasks.start_soon(run)
                else:
                    await run()


def _no_one(event: Event) -> None:
    """Nobody is told."""


def set_probe(order: dict[str, Any], say: Say) -> None:
    """End this process when it comes to `point` (else to any) for the `nth` time, or say every one it passes."""
    change_after_loss = Ending(order.get("point"), nth=order.get("nth", 0))
    probe: Probe = change_after_loss if order.get("nth") else _said(say)
    if order.get("is_by_calls"):
        probe_system_calls(probe)
    else:
        # The wiring takes its probe from here: this process, which ends soon, gets another.
        setattr(ports, "no_probe", probe)  # noqa: B010 - it is another function to the type checker


def _said(say: Say) -> Probe:
    def probe(point: str, /) -> None:
        say(point)

    return probe


def recorded_command(order: dict[str, Any], say: Say) -> None:
    """Run `arguments` in the folder, and save what it did to its files as `recording`."""
    os.chdir(order["folder"])
    shown = os.open(order["shown"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(shown, 1)
    os.dup2(shown, 2)
    recording = Recording(Path(order["folder"]))
    recording.begin()
    code = main(order["arguments"])
    recording.save(Path(order["recording"]))
    os._exit(code)
