"""`nightherd worker`: claims waiting jobs and runs them until it is told to stop."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
import click
from anyio import to_thread
from anyio.abc import TaskStatus

from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import json_option
from nightherd.cli.render import Screen
from nightherd.cli.text import length, neutralise
from nightherd.daemon.describe import problem_line
from nightherd.daemon.fleet_files import FleetFiles
from nightherd.daemon.watching import Watch
from nightherd.engine.output_logs import with_output_logs
from nightherd.engine.worker import Shift, WorkerReports
from nightherd.engine.workshop import Workshop
from nightherd.errors import FencedError
from nightherd.model.event import Event
from nightherd.model.job import Job
from nightherd.model.money import format_usd
from nightherd.views.jobs import job_row
from nightherd.wiring import make_shift, open_workshop, system_clock, write_output_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Where a worker works, and for how long."""

    files: FleetFiles
    state: Path
    environ: Mapping[str, str]
    leaves_when_idle: bool


@click.command("worker", epilog="Example: nightherd worker --until-idle")
@click.option("--until-idle", is_flag=True, help="Leave when nothing waits and nothing runs.")
@json_option
@click.pass_obj
def worker(invocation: Invocation, until_idle: bool) -> None:
    """Run waiting jobs, and take over those whose worker is gone.

    SIGTERM or Ctrl-C lets it finish what it runs; a second one cancels that. Every change of the fleet's
    files reloads the configuration. With --json one document per job that started, ended or was rescued.
    """
    load_fleet_told(invocation)
    post = Post(
        files=FleetFiles(invocation.fleet_file(), invocation.environ),
        state=invocation.state_directory(),
        environ=invocation.environ,
        leaves_when_idle=until_idle,
    )
    try:
        anyio.run(_work, post, invocation.screen)
    except ExceptionGroup as group:
        # One thing went wrong; the group is the task group's wrapping.
        raise group.exceptions[0] from None


async def _work(post: Post, screen: Screen) -> None:
    loading = post.files.load_first()
    assert loading.fleet is not None  # noqa: S101 (the first loading has a fleet, or raised)
    fleet, watch = loading.fleet, Watch(post.files, loading)
    async with open_workshop(post.state, fleet, post.environ) as workshop:
        reports = with_output_logs(
            _reports(screen), lambda: shift.fleet, lambda job: write_output_log(post.state, job)
        )
        shift = make_shift(fleet, workshop, reports, leaves_when_idle=post.leaves_when_idle)
        async with anyio.create_task_group() as tasks:
            await tasks.start(_obey_signals, shift, screen)
            count = len(fleet.agents)
            screen.say(f"{workshop.worker} is at work for {count} agent{'' if count == 1 else 's'}")
            tasks.start_soon(_reload, watch, shift, workshop, screen)
            await shift.work()
            tasks.cancel_scope.cancel()
        if not workshop.lease.holds(workshop.clock.monotonic()):
            raise FencedError(
                f"{workshop.worker} was silent for longer than its lease, and was given up",
                hint="nightherd worker",
            )


async def _reload(watch: Watch, shift: Shift, workshop: Workshop, screen: Screen) -> None:
    """The fleet as its files say, all of it or nothing. What the worker was opened with stays."""
    while True:
        loading = await watch.next()
        if loading.fleet is None:
            for problem in loading.problems:
                screen.say(neutralise(problem_line(problem)))
            screen.say("the configuration stays as it was")
            continue
        shift.adopt(loading.fleet)
        await to_thread.run_sync(workshop.declare, tuple(loading.fleet.agents))
        count = len(loading.fleet.agents)
        screen.say(f"reloaded: {count} agent{'' if count == 1 else 's'}")


async def _obey_signals(
    shift: Shift, screen: Screen, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            if shift.is_draining:
                screen.say("cancelling what runs")
                shift.cancel()
            else:
                screen.say("finishing what runs; once more to cancel it")
                shift.drain()


def _reports(screen: Screen) -> WorkerReports:
    def tell(word: str, job: Job) -> None:
        now = system_clock().now()
        if screen.is_json:
            screen.document("worker", {"what": word, "job": job_row(job, now)}, now)
            return
        parts = [f"{word} {job.id} {job.agent}"]
        if job.is_terminal:
            parts += [job.status.value, format_usd(job.cost_microusd), length(job.duration(now))]
        screen.show(", ".join(parts))
        screen.flush()

    def nothing(job: Job, event: Event) -> None:
        """Events are in the journal; `jobs tail` shows them."""

    return WorkerReports(
        on_start=lambda job: tell("started", job),
        on_event=nothing,
        on_end=lambda job: tell("ended", job),
        on_rescue=lambda job: tell("rescued", job),
        on_trouble=screen.say,
    )
