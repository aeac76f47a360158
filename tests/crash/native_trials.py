"""Native agents in processes killed on their way, with everything they need imported before."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
from msgspec.structs import replace
from pydantic_ai.exceptions import ModelHTTPError

from crash import whole_trials
from nightherd.cli.daemon import start as worker
from nightherd.cli.jobs import actions as job_actions
from nightherd.engine.jobs import run_loop, watch
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.retry import RetryPolicy, TryAgain, next_step
from nightherd.model.journal.system import Suspension
from nightherd.runtimes.native import runtime, script_model
from nightherd.testing.fork_process import Say
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker

LOADED = (runtime, watch, Agent, worker, job_actions)
"""What commands import on first use, so that no trial has to."""

# What is built on first use takes longer than a trial.
runtime.NativeRuntime()

COMMAND = f"{__name__}:command"
GO_ON = f"{__name__}:go_on"
SUBMIT = f"{__name__}:submit"
LOOK_S = 0.005
FAILS = "x"
UNAVAILABLE = 503


def command(order: dict[str, Any], say: Say) -> None:
    """As for every agent; with `after`, not before that file is there."""
    set_provider(order)
    while "after" in order and not Path(order["after"]).exists():
        time.sleep(LOOK_S)
    whole_trials.command(order, say)


def go_on(order: dict[str, Any], say: Say) -> None:
    """As for every agent."""
    set_provider(order)
    whole_trials.go_on(order, say)


def submit(order: dict[str, Any], say: Say) -> None:
    """Record one job for each of `tags`; nobody runs them."""
    folder = Path(order["folder"])
    os.chdir(folder)

    async def work() -> None:
        fleet = load_fleet(folder / "nightherd.yaml", environ=os.environ, cwd=folder).fleet
        agent = next(iter(fleet.agents.values()))
        async with open_worker(folder / ".nightherd", fleet, os.environ) as context:
            for tag in order["tags"]:
                draft = JobDraft(agent=agent, prompt="go", inputs={"tag": tag})
                await record_job(draft, context)

    anyio.run(work)


def set_provider(order: dict[str, Any]) -> None:
    """Let scripts pause while there is a file `held`, and fail as the file `failing` says.

    Who pauses says so by the file `reached`. Each question takes one letter from `failing`.
    """

    async def pause(seconds: float) -> None:
        if "failing" in order and _taken(Path(order["failing"])) == FAILS:
            raise ModelHTTPError(UNAVAILABLE, script_model.NAME)
        if seconds and "held" in order:
            await anyio.Path(order["reached"]).touch()
            held = anyio.Path(order["held"])
            while await held.exists():  # noqa: ASYNC110 - another process takes it away
                await anyio.sleep(LOOK_S)

    # This process ends soon: what scripts wait with is another function in it, and retries come at once.
    setattr(script_model, "anyio", SimpleNamespace(sleep=pause))  # noqa: B010 - not a module to mypy
    setattr(run_loop, "next_step", _at_once)  # noqa: B010 - as above


def _taken(failing: Path) -> str:
    """The first letter of the file, which is in it no longer."""
    letters = failing.read_text()
    failing.write_text(letters[1:])
    return letters[:1]


def _at_once(policy: RetryPolicy, *facts: Any, **more: Any) -> TryAgain | Suspension | None:
    return next_step(replace(policy, base=timedelta(0)), *facts, **more)
