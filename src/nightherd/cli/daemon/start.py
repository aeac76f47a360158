"""`nightherd start` and `nightherd worker`: the processes that run a fleet, in front or in the background."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread

import anyio
import click
from anyio.abc import TaskStatus

from nightherd.cli.daemon.open import open_at_start
from nightherd.cli.daemon.stop import check_free, launch, show_started
from nightherd.cli.edge import document, say, show
from nightherd.cli.fleet.load import load_fleet_to_start, warn_missing
from nightherd.cli.invocation import Invocation, complete_agents, json_option
from nightherd.cli.jobs.list import observed, why_text
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import Screen, length, neutralise
from nightherd.daemon.control import admission_lines, problem_line
from nightherd.daemon.fleet_files import FleetFiles, Watch, ask_about_held
from nightherd.daemon.run import run_daemon
from nightherd.daemon.worker_command import Place, Relay
from nightherd.daemon.worker_service import DaemonOptions
from nightherd.engine.schedules.scheduler import SchedulingReports
from nightherd.engine.workers.worker import WorkerReports
from nightherd.errors import NightherdError, unwrapped
from nightherd.model.agents.agent import Fleet
from nightherd.model.jobs.job import Job
from nightherd.model.text import counted
from nightherd.model.units import format_usd
from nightherd.views.jobs.jobs import job_row
from nightherd.wiring.stores import system_clock

NAMED_BOTS = 3
"""How many bots are named in a line."""


@click.command("start", epilog="Example: nightherd start --detach")
@click.option("-d", "--detach", is_flag=True, help="Run in the background.")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="AGENT",
    shell_complete=complete_agents,
    help="Run only this agent; repeat for several.",
)
@json_option
@click.pass_obj
def start(invocation: Invocation, detach: bool, agents: tuple[str, ...]) -> None:
    """Start the daemon. It fires schedules, runs jobs, resumes jobs of dead workers and serves the API.

    SIGTERM or Ctrl-C stops it after its jobs have finished; a second one cancels the jobs. SIGHUP, or a change
    to the fleet's files, reloads the configuration. --json prints one document per event.
    """
    fleet = load_fleet_to_start(invocation, agents)
    if detach:
        record = launch(invocation, agents)
        warn_missing(invocation, fleet, agents)
        show_started(invocation.screen, record)
        if fleet.web.open_browser and record.address and invocation.screen.is_terminal:
            open_at_start(invocation.new_state_directory(), invocation.screen.say)
        return
    run_in_front(invocation, agents, fleet)


def run_in_front(invocation: Invocation, agents: tuple[str, ...], fleet: Fleet) -> None:
    """Run until the daemon is stopped."""
    screen = invocation.screen
    check_free(invocation.new_state_directory(), invocation.screen)
    post = DaemonOptions(
        files=FleetFiles(
            invocation.fleet_file(), invocation.environ, agents, state_dir=invocation.named_state
        ),
        state_dir=invocation.new_state_directory(),
        environ=invocation.environ,
        worker=_worker_reports(
            screen,
            invocation.new_state_directory(),
            lambda data: document(screen, "happening", data),
        ),
        schedules=_scheduling_reports(screen),
        report=partial(say, screen),
        spell=command_for,
        on_dashboard=_opener(invocation, fleet),
        agents=agents,
    )
    count = sum(len(agent.schedules) for agent in fleet.agents.values())
    agents_text, schedules = counted(len(fleet.agents), "agent"), counted(count, "schedule")
    screen.say(f"process {os.getpid()}: {agents_text}, {schedules}")
    warn_missing(invocation, fleet, agents)
    try:
        anyio.run(run_daemon, post)
    except ExceptionGroup as group:
        raise unwrapped(group) from None


def _opener(invocation: Invocation, fleet: Fleet) -> Callable[[], None]:
    """Return what opens the dashboard once, where a person starts the daemon and wants that."""
    screen, opened = invocation.screen, Event()

    def open_once() -> None:
        if opened.is_set() or not (fleet.web.open_browser and screen.is_terminal):
            return
        opened.set()
        # In a thread: it asks this very process for a login code.
        arguments = (invocation.new_state_directory(), partial(say, screen))
        Thread(target=open_at_start, args=arguments, daemon=True).start()

    return open_once


def _worker_reports(
    screen: Screen, state: Path, write_document: Callable[[object], None]
) -> WorkerReports:
    """Show jobs that started, ended or were rescued; programs get a document for each."""

    def report(word: str, job: Job) -> None:
        now = system_clock().now()
        if screen.is_json:
            write_document({"what": word, "job": job_row(observed(job, state, now))})
        else:
            show(screen, _job_text(word, job, now, state))

    return WorkerReports(
        on_start=lambda job: report("started", job),
        on_event=lambda job, event: None,  # `jobs tail` shows events
        on_end=lambda job: report("ended", job),
        on_rescue=lambda job: report("rescued", job),
        on_trouble=partial(say, screen),
    )


def _job_text(word: str, job: Job, now: datetime, state: Path) -> str:
    """What happened to a job; once the worker is done with it, also how the job stands and what it took."""
    said = f"{word} {job.id} {job.agent}"
    if word != "ended":
        return said
    took = length(observed(job, state, now).worked)
    cost = format_usd(job.cost_microusd)
    return f"{said}, {job.status.value}{'' if job.is_terminal else why_text(job)}, {cost}, {took}"


def _scheduling_reports(screen: Screen) -> SchedulingReports:
    def fired(schedule: str, job: str) -> None:
        report(
            {
                "what": "fired",
                "schedule": schedule,
                "run_id" if job.startswith("run-") else "job_id": job,
            },
            f"fired {schedule}: {job}",
        )

    def skipped(schedule: str, reason: str) -> None:
        text = f"skipped {schedule}: {neutralise(reason)}"
        report({"what": "skipped", "schedule": schedule, "reason": reason}, text)

    def report(data: dict[str, str], text: str) -> None:
        if screen.is_json:
            document(screen, "happening", data)
        else:
            show(screen, text)

    return SchedulingReports(on_fire=fired, on_skip=skipped, on_trouble=partial(say, screen))


def _say_bots_are_silent(screen: Screen, fleet: Fleet) -> None:
    """Say which bots a worker without a daemon does not run."""
    bots = [bot.bot for agent in fleet.agents.values() for bot in agent.bots]
    if bots:
        more = f" and {len(bots) - NAMED_BOTS} more" if len(bots) > NAMED_BOTS else ""
        screen.say(
            f"a worker runs no bots; nightherd start does: {', '.join(bots[:NAMED_BOTS])}{more}"
        )


@click.command("worker", epilog="Example: nightherd worker --until-idle")
@click.option("--until-idle", is_flag=True, help="Exit when no job is queued or running.")
@json_option
@click.pass_obj
def worker(invocation: Invocation, until_idle: bool) -> None:
    """Run queued jobs without a daemon. Also resumes jobs of dead workers.

    SIGTERM or Ctrl-C stops it after its jobs have finished; a second one cancels the jobs. A change to the
    fleet's files reloads the configuration. --json prints one document per job that started, ended or was rescued.
    """
    screen, fleet = invocation.screen, load_fleet_to_start(invocation)
    warn_missing(invocation, fleet)
    _say_bots_are_silent(screen, fleet)
    place = Place(
        state_dir=invocation.new_state_directory(),
        environ=invocation.environ,
        leaves_when_idle=until_idle,
        reports=_worker_reports(
            screen, invocation.new_state_directory(), lambda data: document(screen, "worker", data)
        ),
        report=partial(say, screen),
        spell=command_for,
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
    await ask_about_held(loading, place.state_dir, place.report)
    async with anyio.create_task_group() as tasks:
        await tasks.start(_obey_signals, relay, place.report)
        tasks.start_soon(_reload, Watch(files, loading), relay, place)
        await relay.work()
        tasks.cancel_scope.cancel()


async def _reload(watch: Watch, relay: Relay, place: Place) -> None:
    """The fleet as its files say, all of it or nothing."""
    report = place.report
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
                    report(neutralise(problem))
                report(f"reloaded: {counted(len(loading.fleet.agents), 'agent')}")
                for line in admission_lines(loading):
                    report(neutralise(line))
                await ask_about_held(loading, place.state_dir, report)
                continue
        for problem in problems:
            report(neutralise(problem))
        report("the configuration is unchanged")


async def _obey_signals(
    relay: Relay,
    report: Callable[[str], None],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            if relay.is_draining:
                report("cancelling what runs")
                relay.cancel()
            else:
                report("finishing running jobs; press again to cancel them")
                relay.drain()
