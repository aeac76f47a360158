"""The daemon: one process that schedules, works, rescues and serves, until it is told to stop.

Everything it does could be done by other processes on the same directory at the same time; it only is the
one that is always there.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskStatus

from nightherd import __version__
from nightherd.daemon.api import serve_api
from nightherd.daemon.fleet_files import FleetFiles, Loading, stamp_of
from nightherd.daemon.log import telling
from nightherd.daemon.notify import Notifier
from nightherd.daemon.record import SOCKET, make_record, owning, write_record
from nightherd.engine.output_logs import with_output_logs
from nightherd.engine.scheduling import Scheduler, SchedulingReports
from nightherd.engine.worker import Shift, WorkerReports
from nightherd.engine.workshop import Workshop
from nightherd.errors import NightherdError, StateFileError
from nightherd.files.corrupt import keep_aside
from nightherd.mirror.fleet_state import read_fleet_state
from nightherd.model.agent import Fleet
from nightherd.state.directory import init_state_directory
from nightherd.wiring import make_shift, open_workshop, system_clock, write_output_log

LOOK_S = 1.0
"""How often the fleet's files are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What a daemon runs, where, and whom it tells."""

    files: FleetFiles
    state_dir: Path
    environ: Mapping[str, str]
    worker: WorkerReports
    schedules: SchedulingReports
    tell: Callable[[str], None]
    agents: tuple[str, ...] = ()


async def run_daemon(post: Post) -> None:
    """Run until it is told to stop and has finished. `RefusedError` when another runs the directory.

    `ConfigError` for a configuration that cannot be used at the start; later ones only are reported.
    """
    loading = post.files.load_first()
    init_state_directory(post.state_dir)
    with (
        owning(post.state_dir),
        telling(post.state_dir, {**environment_of(loading), **post.environ}, post.tell) as tell,
    ):
        post = replace(post, tell=tell)
        _check_mirror(post)
        await Daemon(post, loading).run()


def environment_of(loading: Loading) -> Mapping[str, str]:
    """What the fleet's files add to the environment: among it are secrets."""
    return loading.fleet.environment if loading.fleet is not None else {}


class Daemon:
    """The process while it lasts."""

    def __init__(self, post: Post, loading: Loading) -> None:
        assert loading.fleet is not None  # noqa: S101 (the first loading has a fleet, or raised)
        self._post = post
        self._loading = loading
        self._fleet: Fleet = loading.fleet
        self._clock = system_clock()
        self._notifier = Notifier(post.environ)
        self._record = make_record(
            at=self._clock.now(),
            version=__version__,
            config=str(post.files.file),
            agents=list(post.agents) or None,
        )
        self._workshop: Workshop | None = None
        self._shift: Shift | None = None
        self._scheduler: Scheduler | None = None
        self._scheduling = anyio.CancelScope()
        self._is_stopping = False
        self._is_cancelling = False
        self._hangup = anyio.Event()

    async def run(self) -> None:
        """Work, with a new lease whenever one was lost, until told to stop."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._obey_signals)
            tasks.start_soon(self._watch_files)
            tasks.start_soon(self._say_alive)
            while not self._is_stopping:
                await self._work()
            tasks.cancel_scope.cancel()

    async def _work(self) -> None:
        post = self._post
        started_at = self._record.started_at
        async with open_workshop(
            post.state_dir, self._fleet, post.environ, started_at=started_at
        ) as workshop:
            reports = with_output_logs(
                post.worker,
                lambda: self._fleet,
                lambda job_id: write_output_log(post.state_dir, job_id),
            )
            shift = make_shift(self._fleet, workshop, reports, leaves_when_idle=False)
            scheduler = Scheduler(
                self._fleet, workshop, post.schedules, keeps_all=post.files.is_whole
            )
            async with anyio.create_task_group() as tasks:
                ports = await tasks.start(self._serve, workshop)
                self._workshop, self._shift, self._scheduler = workshop, shift, scheduler
                self._scheduling = anyio.CancelScope()
                self._note(socket=SOCKET if ports is not None else None, ports=ports or [])
                self._notifier.ready()
                self._notifier.status(f"{len(self._fleet.agents)} agents")
                tasks.start_soon(self._schedule)
                if self._is_stopping:
                    self._stop_work()
                await shift.work()
                tasks.cancel_scope.cancel()
            if not self._is_stopping:
                post.tell(f"{workshop.worker} was silent for longer than its lease; beginning anew")

    async def _serve(
        self,
        workshop: Workshop,
        *,
        task_status: TaskStatus[list[int] | None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        post = self._post
        await serve_api(
            post.state_dir,
            lambda: self._fleet,
            workshop,
            post.environ,
            post.tell,
            task_status=task_status,
        )

    async def _schedule(self) -> None:
        if self._scheduler is not None:
            with self._scheduling:
                await self._scheduler.run()

    async def _obey_signals(
        self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        with anyio.open_signal_receiver(*wanted) as signals:
            task_status.started()
            async for one in signals:
                if one is signal.SIGHUP:
                    self._hangup.set()
                    continue
                self._is_cancelling = self._is_stopping
                self._is_stopping = True
                self._stop_work()

    def _stop_work(self) -> None:
        """Fire no more slots, take no more jobs; the second time, end those that run."""
        self._scheduling.cancel()
        self._notifier.stopping()
        self._note(is_draining=True)
        if self._is_cancelling:
            self._post.tell("cancelling what runs")
            if self._shift is not None:
                self._shift.cancel()
        else:
            self._post.tell("finishing what runs; once more to cancel it")
            if self._shift is not None:
                self._shift.drain()

    async def _watch_files(self) -> None:
        while True:
            with anyio.move_on_after(LOOK_S):
                await self._hangup.wait()
            is_asked, self._hangup = self._hangup.is_set(), anyio.Event()
            now = await to_thread.run_sync(stamp_of, self._loading.files)
            if is_asked or now != self._loading.stamp:
                await self._reload()

    async def _reload(self) -> None:
        """The fleet as its files say now, all of it or nothing."""
        loading = await to_thread.run_sync(self._post.files.load, self._loading)
        self._loading = loading
        at = self._clock.now()
        if loading.fleet is None:
            self._note(problems=loading.problems, failed_at=at)
            for problem in loading.problems:
                place = f"{problem['file']}:{problem['line']}:{problem['column']}"
                self._post.tell(f"{place}: {problem['message']}")
            self._post.tell("the configuration stays as it was")
            return
        self._fleet = loading.fleet
        if self._shift is not None:
            self._shift.adopt(loading.fleet)
        if self._scheduler is not None:
            self._scheduler.adopt(loading.fleet)
        if self._workshop is not None:
            await to_thread.run_sync(self._workshop.declare, tuple(loading.fleet.agents))
        self._note(problems=[], failed_at=None, loaded_at=at)
        count = len(loading.fleet.agents)
        self._post.tell(f"reloaded: {count} agent{'' if count == 1 else 's'}")

    async def _say_alive(self) -> None:
        every = self._notifier.watchdog_s
        while every is not None:
            self._notifier.alive()
            await anyio.sleep(every)

    def _note(self, **changes: Any) -> None:
        """Say what is so in the record that `status` reads; that it cannot be said stops nothing."""
        self._record = msgspec.structs.replace(self._record, **changes)
        try:
            write_record(self._post.state_dir, self._record)
        except NightherdError as error:
            self._post.tell(error.message)


def _check_mirror(post: Post) -> None:
    """A `state.yaml` that cannot be read is kept aside before it is written anew."""
    path = post.state_dir / "state.yaml"
    try:
        read_fleet_state(path)
    except StateFileError as error:
        aside = keep_aside(path, system_clock().now())
        post.tell(f"{error.message}; it is kept as {aside.name}")
