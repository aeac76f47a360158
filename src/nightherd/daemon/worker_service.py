"""WorkerService: one worker of the daemon with its schedules and its API, from opening the stores to closing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskStatus
from msgspec.structs import replace

from nightherd.daemon.bots import BotService
from nightherd.daemon.control import daemon_row
from nightherd.daemon.fleet_files import FleetFiles
from nightherd.daemon.record import SERVING, SOCKET, find_daemon
from nightherd.daemon.retention import FIRST_S
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.notifications.notifier import Notifier
from nightherd.engine.schedules.scheduler import Scheduler, SchedulingReports
from nightherd.engine.work.intake import Intake
from nightherd.engine.work.settler import Settler
from nightherd.engine.workers.changed_fleet import for_fleet
from nightherd.engine.workers.lease import Beats
from nightherd.engine.workers.output_logs import with_output_logs
from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
from nightherd.model.access.web import APPEARANCE, Web
from nightherd.model.agents.agent import Fleet
from nightherd.model.chat.platform import BotId
from nightherd.model.webhooks import is_loopback
from nightherd.next_step import SpellStep, plain_step
from nightherd.ports.chat import TakesRequests
from nightherd.views.fleet.status import DaemonRow
from nightherd.wiring.files import write_output_log
from nightherd.wiring.machine import since_boot
from nightherd.wiring.notifications import make_notifier, make_push_keys
from nightherd.wiring.running import make_worker_loop, open_worker
from nightherd.wiring.stores import ensure_web_token, load_persistence, made_at, random_text
from nightherd.wiring.work import make_work

NEEDED = ("fastapi", "uvicorn")


def make_token(state_dir: Path, fleet: Fleet, environ: Mapping[str, str]) -> None:
    """Make the token and the keys that the API will need before anything is masked: no agent prints what is not known."""
    environment = {**fleet.environment, **environ}
    web = fleet.web
    if web.enabled and is_loopback(web.host) and not environment.get(web.token_env, "").strip():
        ensure_web_token(state_dir, random_text())
    if web.enabled:
        make_push_keys(state_dir)


async def serve_api(  # noqa: PLR0913 (what a daemon gives the API)
    state_dir: Path,
    fleet: Callable[[], Fleet],
    bench: Callable[[], WorkerContext],
    environ: Mapping[str, str],
    report: Callable[[str], None],
    wake: Callable[[], None],
    reload: Callable[[], None],
    bot_requests: Callable[[BotId], TakesRequests | None],
    *,
    task_status: TaskStatus[list[int] | None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; once started, it passes on the ports it listens on, or None without an API."""
    from nightherd.web.api_context import open_api_context
    from nightherd.web.hooks import warn_without_secret
    from nightherd.web.people.push import end_devices_without_login
    from nightherd.web.ports import ports_of
    from nightherd.web.server import make_app, serve

    if any(find_spec(name) is None for name in NEEDED):
        report(f"the API is not served: {SERVING}")
        task_status.started(None)
        return

    def describe(now: datetime) -> DaemonRow | None:
        record = find_daemon(state_dir)
        return None if record is None else daemon_row(record, now)

    async with open_api_context(
        state_dir, fleet, bench, environ, report, describe, wake, reload, bot_requests
    ) as site:
        ports = ports_of(fleet(), site, state_dir, bench().random_text)
        await end_devices_without_login(site, ports)
        app = make_app(site)
        warn_without_secret(site)
        await serve(app, site, state_dir / SOCKET, ports, task_status=task_status)


def _nothing() -> None:
    """Do nothing: there is no daemon yet."""


class DaemonOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a daemon runs, where, and where it reports."""

    files: FleetFiles
    state_dir: Path
    environ: Mapping[str, str]
    worker: WorkerReports
    schedules: SchedulingReports
    report: Callable[[str], None]
    spell: SpellStep = plain_step
    """How notifications write commands."""
    reload: Callable[[], None] = _nothing
    """Called when a person accepted what the files give agents."""
    on_dashboard: Callable[[], None] = _nothing
    """Called whenever the dashboard has begun to be served."""
    agents: tuple[str, ...] = ()
    retention_after_s: float = FIRST_S
    """How long after the start it is first looked at whether retention is due."""


def groundwork(fleet: Fleet, post: DaemonOptions) -> tuple[Any, ...]:
    """What a service is opened with: a fleet in which this is different needs another one."""
    webhooks, environment = fleet.webhooks, {**fleet.environment, **post.environ}
    return (
        worker_groundwork(fleet, post.state_dir),
        (
            replace(fleet.web, **{name: getattr(Web(), name) for name in APPEARANCE}),
            environment.get(fleet.web.token_env) if fleet.web.enabled else None,
            _certificate(fleet),
        ),
        (webhooks.enabled, webhooks.host, webhooks.port),
    )


def _certificate(fleet: Fleet) -> list[tuple[int, int] | None]:
    """Which certificate is served: a renewed one needs another service."""
    tls = fleet.web.tls
    found: list[tuple[int, int] | None] = []
    for name in () if tls is None else (tls.cert, tls.key):
        try:
            stat = (Path(fleet.file).parent / name).stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_mtime_ns, stat.st_ino))
    return found


def worker_groundwork(fleet: Fleet, state_dir: Path) -> tuple[Any, ...]:
    """The same of a worker alone. `ConfigError` when what the project says of its state cannot be used."""
    return (
        (fleet.lease, fleet.heartbeat, fleet.cancel_grace, fleet.durability, fleet.mirror),
        load_persistence(state_dir),
    )


class WorkerService:
    """One worker at work. What is asked of it before it works, or after, has no effect."""

    def __init__(self, post: DaemonOptions, fleet: Fleet, started_at: datetime) -> None:
        self._post = post
        self._fleet = fleet
        self._started_at = started_at
        self._context: WorkerContext | None = None
        self._shift: WorkerLoop | None = None
        self._scheduler: Scheduler | None = None
        self._notifier: Notifier | None = None
        self._intake: Intake | None = None
        self._settler: Settler | None = None
        self._bots = BotService(post.state_dir, post.environ, post.report, self._wake)
        self._scheduling = anyio.CancelScope()
        self._doors = anyio.CancelScope()
        self.groundwork = groundwork(fleet, post)
        self.left = anyio.Event()
        """It fires no more slots and serves no more; what it runs may still continue."""
        self.is_retired = False
        self.is_over = False
        """Nothing of it runs any more."""
        self.failure: Exception | None = None
        """What ended it after it had begun, if something did."""

    @property
    def fleet(self) -> Fleet:
        """The fleet it works for."""
        return self._fleet

    @property
    def worker(self) -> str:
        """What it is called on record."""
        return "" if self._context is None else self._context.worker

    async def work(
        self, *, task_status: TaskStatus[list[int] | None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Work until it is drained or its lease is lost; once started, it passes on the ports it listens on.

        What fails before that is raised; what fails later is its `failure`.
        """
        has_begun = False
        post = self._post
        try:
            make_token(post.state_dir, self._fleet, post.environ)
            async with open_worker(
                post.state_dir, self._fleet, post.environ, started_at=self._started_at
            ) as context:
                reports = with_output_logs(
                    post.worker,
                    lambda: self._fleet,
                    lambda job_id: write_output_log(post.state_dir, job_id),
                )
                self._context = context
                beats = Beats()
                self._shift = make_worker_loop(
                    self._fleet, context, reports, leaves_when_idle=False, beats=beats
                )
                self._intake, self._settler = make_work(
                    self._fleet, context, context.worker, post.report
                )
                self._scheduler = Scheduler(
                    self._fleet,
                    context,
                    post.schedules,
                    keeps_all=post.files.is_whole,
                    beats=beats,
                    since_boot=since_boot,
                    known_since=made_at(post.state_dir),
                    intake=self._intake,
                )
                self._intake.wake_with(self._scheduler.wake)
                self._notifier = make_notifier(
                    post.state_dir,
                    self._fleet,
                    context,
                    post.environ,
                    post.spell,
                    is_whole=post.files.is_whole,
                )
                async with anyio.create_task_group() as tasks:
                    task_status.started(await tasks.start(self._keep_open))
                    has_begun = True
                    await self._work_and_notify(self._shift, self._notifier, self._settler)
                    await self._bots.finish()
                    tasks.cancel_scope.cancel()
        except Exception as error:
            if not has_begun:
                raise
            self.failure = error
        finally:
            self.is_over = True
            self.left.set()

    async def _work_and_notify(
        self, shift: WorkerLoop, notifier: Notifier, settler: Settler
    ) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(notifier.run)
            tasks.start_soon(settler.run)
            await shift.work()
            notifier.leave()
            settler.leave()

    async def adopt(self, fleet: Fleet) -> None:
        """From now on the fleet is this one, for everything that begins."""
        before, self._fleet = self._fleet, fleet
        if self._context is None or self._shift is None or self._scheduler is None:
            return
        self._context = for_fleet(self._context, fleet, before)
        self._shift.adopt(fleet)
        self._scheduler.adopt(fleet)
        if self._intake is not None and self._settler is not None:
            self._intake.adopt(self._context)
            self._settler.adopt(fleet, self._context)
        if self._notifier is not None:
            self._notifier.adopt(fleet, self._context.environment, self._context.secrets)
        self._bots.adopt(fleet, self._context)
        await to_thread.run_sync(self._context.declare, fleet.standing)

    def drain(self) -> None:
        """Fire no more slots and take no more jobs; it ends when those that run have ended."""
        self._scheduling.cancel()
        if self._shift is not None:
            self._shift.drain()

    def cancel(self) -> None:
        """The same, and end those that run."""
        self.drain()
        if self._shift is not None:
            self._shift.cancel()

    def retire(self) -> None:
        """Make room for another: fire and serve no more at once, and finish what runs."""
        self.is_retired = True
        self._doors.cancel()
        self.drain()

    async def _keep_open(
        self, *, task_status: TaskStatus[list[int] | None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Schedules are kept, the API is served and bots answer, until the worker leaves or makes room."""
        with self._doors:
            async with anyio.create_task_group() as tasks:
                ports = await tasks.start(self._serve)
                tasks.start_soon(self._schedule)
                tasks.start_soon(self._bots.run, self._fleet, self._bench())
                task_status.started(ports)
        self.left.set()

    async def _schedule(self) -> None:
        if self._scheduler is not None and self._intake is not None:
            with self._scheduling:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._intake.run)
                    await self._scheduler.run()

    async def _serve(
        self, *, task_status: TaskStatus[list[int] | None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        post = self._post
        await serve_api(
            post.state_dir,
            lambda: self._fleet,
            self._bench,
            post.environ,
            post.report,
            self._wake,
            post.reload,
            self._bots.find_requests,
            task_status=task_status,
        )

    def _bench(self) -> WorkerContext:
        assert self._context is not None  # noqa: S101 (opened before anything is served)
        return self._context

    def _wake(self) -> None:
        """Something was asked for: neither schedules nor jobs wait for the next look."""
        if self._shift is not None and self._scheduler is not None:
            self._shift.wake()
            self._scheduler.wake()
