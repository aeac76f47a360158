"""Commands of jobs in processes that are killed on their way, with everything they need imported before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio

from crash.whole_trials import set_probe
from nightherd.engine.doctor.record import apply_changes, list_jobs, recollected
from nightherd.engine.jobs import watch
from nightherd.engine.jobs.lost_execution import change_after_loss
from nightherd.engine.jobs.runner import run_job
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import Event
from nightherd.model.workflows.command import COMMANDS_AGENT
from nightherd.runtimes.command import runtime
from nightherd.runtimes.protection import kill_all_marked
from nightherd.testing.fork_process import Say
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_repair
from runtimes.command.command_stage import ENVIRONMENT, commands_fleet

LOADED = (runtime, watch, kill_all_marked)
"""What is imported on first use, so that no trial has to."""

WORK = f"{__name__}:work"


def work(order: dict[str, Any], say: Say) -> None:
    """Give up every job that runs by its row, then run what waits; with a probe, killed on the way."""
    os.chdir(order["folder"])
    set_probe(order, say)
    anyio.run(_work, Path(order["folder"]))


async def _work(folder: Path) -> None:
    state, fleet = folder / ".nightherd", commands_fleet(folder)
    async with open_repair(state) as record:
        for job in list(list_jobs(record.reader, JobStatus.RUNNING)):
            lost = change_after_loss(job, recollected(record, job.id), record, max_restarts=99)
            await apply_changes(record, [lost])
    async with open_worker(state, fleet, ENVIRONMENT) as context:
        for job in list(list_jobs(context.reader, JobStatus.PENDING)):
            await run_job(job.id, fleet.agents[COMMANDS_AGENT], context, on_event=_no_one)


def _no_one(event: Event) -> None:
    """Nobody watches."""
