"""The daemon: one process that schedules, runs and rescues jobs and serves the API, until it is stopped.

Everything it does could be done by other processes on the same directory at the same time; it only is the
one that is always there.
"""

from __future__ import annotations

import signal
from typing import Any

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from msgspec.structs import replace

from nightherd import __version__
from nightherd.daemon.control import admission_lines, problem_line
from nightherd.daemon.fleet_files import Loading, Watch, ask_about_held
from nightherd.daemon.output import OUTPUT, DaemonLog, logging_notices, trim_output
from nightherd.daemon.record import SOCKET, make_record, owning, write_record
from nightherd.daemon.retention import AutomaticRetention
from nightherd.daemon.systemd import Notifier
from nightherd.daemon.worker_service import DaemonOptions, WorkerService, groundwork
from nightherd.errors import NightherdError, StateFileError, message_of, unwrapped
from nightherd.files.permission import keep_aside
from nightherd.model.access.web import dashboard_url
from nightherd.model.agents.agent import Fleet
from nightherd.model.jobs.retry import Backoff
from nightherd.model.text import counted
from nightherd.wiring.files import read_fleet_state
from nightherd.wiring.index import index_follower
from nightherd.wiring.stores import init_state_directory, known_secrets, system_clock

RETRY_S = 5.0
"""Before the fleet's files are looked at again after that failed."""
TRIM_S = 10.0
"""How often it is looked at how much has been said."""


async def run_daemon(post: DaemonOptions) -> None:
    """Run until it is stopped and its jobs have finished. `RefusedError` when another runs the directory.

    `ConfigError` for a configuration that cannot be used at the start; later ones only are reported.
    """
    loading = post.files.load_first()
    assert loading.fleet is not None  # noqa: S101 (the first loading has a fleet, or raised)
    init_state_directory(post.state_dir)
    with (
        owning(post.state_dir),
        logging_notices(
            post.state_dir, known_secrets(loading.fleet, post.environ, post.state_dir), post.report
        ) as log,
    ):
        post = replace(post, report=log.report)
        _check_mirror(post)
        await Daemon(post, loading, loading.fleet, log).run()


class Daemon:
    """The process while it lasts."""

    def __init__(self, post: DaemonOptions, loading: Loading, fleet: Fleet, log: DaemonLog) -> None:
        self._watch = Watch(post.files, loading)
        self._post = replace(post, reload=self._watch.ask)
        self._first = loading
        self._first_lines = admission_lines(loading)
        self._fleet = fleet
        self._log = log
        self._clock = system_clock()
        self._notifier = Notifier(post.environ)
        self._record = make_record(
            at=self._clock.now(),
            version=__version__,
            config=str(post.files.file),
            agents=list(post.agents) or None,
        )
        self._record = msgspec.structs.replace(self._record, pending=list(loading.pending))
        self._services: list[WorkerService] = []
        """The one at work last; those before it finish what they run."""
        self._proven: Fleet | None = None
        """The fleet that a service could begin with."""
        self._backoff = Backoff()
        self._stopping = anyio.Event()
        self._is_stopping = False
        self._is_cancelling = False
        self._index = index_follower(post.state_dir, log.report)
        self._retention = AutomaticRetention(
            post.state_dir,
            self._clock,
            log.report,
            lambda: self._is_stopping,
            first_s=post.retention_after_s,
            fleet=lambda: self._fleet,
        )

    async def run(self) -> None:
        """Work, with a new worker whenever one is needed, until it is stopped.

        Once a worker has begun, only a stop ends this: a fault such as a full disk may pass.
        """
        for line in self._first_lines:
            self._log.report(line)
        await ask_about_held(self._first, self._post.state_dir, self._log.report)
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._obey_signals)
            tasks.start_soon(self._watch_files)
            tasks.start_soon(self._say_alive)
            tasks.start_soon(self._keep_output_short)
            tasks.start_soon(self._retention.keep)
            self._index.start()
            async with anyio.create_task_group() as services:
                while not self._is_stopping:
                    await self._work(services)
            await to_thread.run_sync(self._index.stop)
            tasks.cancel_scope.cancel()

    async def _work(self, services: TaskGroup) -> None:
        """One service, until it needs no other, or another in its place."""
        service = await self._begin(services)
        if service is None:
            return
        self._notifier.ready()
        if self._is_stopping:
            self._stop_work()
        else:
            await self._bring_up_to_date(service)
        await service.left.wait()
        if self._is_stopping or service.is_retired:
            return
        if service.failure is None:
            self._log.report(
                f"{service.worker} did not renew its lease in time; starting a new worker"
            )
        else:
            await self._pause(f"{service.worker} had to stop", service.failure)

    async def _begin(self, services: TaskGroup) -> WorkerService | None:
        """A service at work, however long that takes to be possible; None when it is stopped before.

        One that a new configuration made impossible is made as it was before. The first of all has to
        begin at once: the command that starts the daemon reports why not.
        """
        while not self._is_stopping:
            service = WorkerService(self._post, self._fleet, self._record.started_at)
            self._services = [one for one in self._services if not one.is_over]
            try:
                ports = await services.start(service.work)
            except Exception as error:
                if self._proven is None:
                    raise
                if self._proven is self._fleet:
                    await self._pause("no worker can begin", error)
                    continue
                self._fleet = self._proven
                self._refuse([self._problem(unwrapped(error))])
                continue
            self._note_begun(service, ports)
            return service
        return None

    def _note_begun(self, service: WorkerService, ports: list[int] | None) -> None:
        if self._backoff.is_failing:
            self._log.report(f"{service.worker} is running again")
        self._backoff.reset()
        self._proven = service.fleet
        self._services.append(service)
        web = service.fleet.web
        address = dashboard_url(web, ports[0]) if web.enabled and ports else None
        self._note(socket=SOCKET if ports is not None else None, ports=ports or [], address=address)
        if ports:
            self._log.report(f"listening on port {', '.join(str(port) for port in ports)}")
        if address is not None:
            self._log.report(f"dashboard: {address}")
            self._post.on_dashboard()

    async def _pause(self, what: str, error: Exception) -> None:
        """Say what failed, once in a row, and wait before the next try; a signal to stop ends the wait."""
        message = message_of(unwrapped(error))
        pause_s, is_new = self._backoff.fail(message)
        if is_new:
            self._log.report(f"{what}: {message}; trying again until it works")
        with anyio.move_on_after(pause_s):
            await self._stopping.wait()

    async def _obey_signals(
        self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        with anyio.open_signal_receiver(*wanted) as signals:
            task_status.started()
            async for one in signals:
                if one is signal.SIGHUP:
                    self._watch.ask()
                    continue
                self._is_cancelling = self._is_stopping
                self._is_stopping = True
                self._stopping.set()
                how = "finishing running jobs; press again to cancel them"
                self._log.report("cancelling what runs" if self._is_cancelling else how)
                self._stop_work()

    def _stop_work(self) -> None:
        """Fire no more slots, take no more jobs; the second time, end those that run."""
        self._notifier.stopping()
        self._note(is_draining=True)
        for service in self._services:
            service.cancel() if self._is_cancelling else service.drain()

    async def _watch_files(self) -> None:
        while True:
            try:
                await self._take_in(await self._watch.next())
            except Exception as error:  # noqa: BLE001 (an edge: the fleet that runs continues)
                self._refuse([self._problem(error)])
                await anyio.sleep(RETRY_S)

    async def _keep_output_short(self) -> None:
        while True:
            trim_output(self._post.state_dir / "logs" / OUTPUT)
            await anyio.sleep(TRIM_S)

    async def _take_in(self, loading: Loading) -> None:
        """The fleet as its files say now, all of it or nothing."""
        if loading.fleet is None:
            self._refuse(loading.problems)
            return
        self._fleet = loading.fleet
        self._log.know(known_secrets(loading.fleet, self._post.environ, self._post.state_dir))
        try:
            if self._services:
                await self._bring_up_to_date(self._services[-1])
        except NightherdError as error:
            self._refuse([self._problem(error)])
            return
        self._note(
            problems=[], failed_at=None, loaded_at=self._clock.now(), pending=list(loading.pending)
        )
        agents = counted(len(loading.fleet.agents), "agent")
        self._notifier.status(agents)
        for problem in loading.problems:
            self._log.report(problem_line(problem))
        self._log.report(f"reloaded: {agents}")
        for line in admission_lines(loading):
            self._log.report(line)
        await ask_about_held(loading, self._post.state_dir, self._log.report)

    async def _bring_up_to_date(self, service: WorkerService) -> None:
        """It works for the fleet as it is now; or makes room for one that can."""
        fleet = self._fleet
        if service.fleet is fleet or service.is_retired:
            return
        is_possible = groundwork(fleet, self._post) == service.groundwork
        await service.adopt(fleet)
        if is_possible:
            self._proven = fleet
        else:
            self._log.report(f"{service.worker} finishes its running jobs; another worker starts")
            service.retire()

    def _refuse(self, problems: list[dict[str, Any]]) -> None:
        """A newer configuration is not used: it is reported why, here and in `status`."""
        self._note(problems=problems, failed_at=self._clock.now())
        for problem in problems:
            self._log.report(problem_line(problem))
        self._log.report("the configuration is unchanged")

    def _problem(self, error: BaseException) -> dict[str, Any]:
        file, message = self._post.files.file.name, message_of(error)
        return {"file": file, "line": 1, "column": 1, "message": message}

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
        except (NightherdError, OSError) as error:
            self._log.report(message_of(error))


def _check_mirror(post: DaemonOptions) -> None:
    """A `state.yaml` that cannot be read is kept aside before it is rewritten."""
    path = post.state_dir / "state.yaml"
    try:
        read_fleet_state(path)
    except StateFileError as error:
        aside = keep_aside(path, system_clock().now())
        post.report(f"{error.message}; it is kept as {aside.name}")
