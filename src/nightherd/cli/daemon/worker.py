"""`nightherd worker`: claims waiting jobs and runs them until it is told to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import click
from anyio.abc import TaskStatus

from nightherd.cli.edge import document, say, show
from nightherd.cli.fleet.load import load_fleet_to_start, tell_missing
from nightherd.cli.invocation import Invocation
from nightherd.cli.jobs.list import happening, observed
from nightherd.cli.options import json_option
from nightherd.cli.screen.render import Screen
from nightherd.cli.screen.text import neutralise
from nightherd.daemon.control import admission_lines, problem_line
from nightherd.daemon.fleet_files import FleetFiles, Watch
from nightherd.daemon.worker_command import Place, Relay
from nightherd.engine.workers.worker import WorkerReports
from nightherd.errors import NightherdError, unwrapped
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import Event
from nightherd.model.text import counted
from nightherd.views.jobs import job_row
from nightherd.wiring.stores import system_clock


@click.command("worker", epilog="Example: nightherd worker --until-idle")
@click.option("--until-idle", is_flag=True, help="Exit when no job is queued or running.")
@json_option
@click.pass_obj
def worker(invocation: Invocation, until_idle: bool) -> None:
    """Run queued jobs without a daemon. Also resumes jobs of dead workers.

    SIGTERM or Ctrl-C stops it after its jobs have finished; a second one cancels the jobs. A change to the
    fleet's files reloads the configuration. --json prints one document per job that started, ended or was rescued.
    """
    tell_missing(invocation, load_fleet_to_start(invocation))
    place = Place(
        state_dir=invocation.new_state_directory(),
        environ=invocation.environ,
        leaves_when_idle=until_idle,
        reports=_reports(invocation.screen, invocation.new_state_directory()),
        tell=partial(say, invocation.screen),
    )
    files = FleetFiles(
        invocation.fleet_file(), invocation.environ, state_dir=invocation.named_state
    )
    try:
        anyio.run(_work, place, files)
    except ExceptionGroup as group:
        raise unwrapped(group) from None


async def _work(place: Place, files: FleetFiles) -> None:
    loading = files.load_first()
    assert loading.fleet is not None  # noqa: S101 (the first loading has a fleet, or raised)
    relay = Relay(place, loading.fleet)
    async with anyio.create_task_group() as tasks:
        await tasks.start(_obey_signals, relay, place.tell)
        tasks.start_soon(_reload, Watch(files, loading), relay, place.tell)
        await relay.work()
        tasks.cancel_scope.cancel()


async def _reload(watch: Watch, relay: Relay, tell: Callable[[str], None]) -> None:
    """The fleet as its files say, all of it or nothing."""
    while True:
        loading = await watch.next()
        problems = [problem_line(problem) for problem in loading.problems]
        if loading.fleet is not None:
            try:
                await relay.adopt(loading.fleet)
            except NightherdError as error:
                problems = [error.message]
            else:
                for problem in problems:
                    tell(neutralise(problem))
                tell(f"reloaded: {counted(len(loading.fleet.agents), 'agent')}")
                for line in admission_lines(loading):
                    tell(neutralise(line))
                continue
        for problem in problems:
            tell(neutralise(problem))
        tell("the configuration is unchanged")


async def _obey_signals(
    relay: Relay,
    tell: Callable[[str], None],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            if relay.is_draining:
                tell("cancelling what runs")
                relay.cancel()
            else:
                tell("finishing running jobs; press again to cancel them")
                relay.drain()


def _reports(screen: Screen, state: Path) -> WorkerReports:
    def tell(word: str, job: Job) -> None:
        now = system_clock().now()
        if screen.is_json:
            document(screen, "worker", {"what": word, "job": job_row(observed(job, state, now))})
            return
        show(screen, happening(word, job, now, state))

    def nothing(job: Job, event: Event) -> None:
        """Events are in the journal; `jobs tail` shows them."""

    return WorkerReports(
        on_start=lambda job: tell("started", job),
        on_event=nothing,
        on_end=lambda job: tell("ended", job),
        on_rescue=lambda job: tell("rescued", job),
        on_trouble=partial(say, screen),
    )
