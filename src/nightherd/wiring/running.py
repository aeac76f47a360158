"""Everything running jobs needs, and those who run and rescue them."""

from __future__ import annotations

import posixpath
import sys
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import cache, partial
from os.path import realpath
from typing import TYPE_CHECKING

from msgspec.structs import fields, replace

from nightherd import __version__
from nightherd.engine.contexts import Stores
from nightherd.errors import ConfigInvalidError, RefusedError
from nightherd.model.checkpoints.persistence import DEFAULT as DEFAULT_PERSISTENCE
from nightherd.wiring.chat import chat_directory, open_outgoing_files
from nightherd.wiring.executions import ending_of_executions
from nightherd.wiring.files import finished_journals, open_mirror, transcripts_of
from nightherd.wiring.runtimes import Runtimes, can_run, has_price
from nightherd.wiring.stores import (
    known_secrets,
    load_persistence,
    open_journals,
    open_log,
    open_reader,
    open_store,
    open_threads,
    random_text,
    system_clock,
)
from nightherd.wiring.work import fleet_name_of, open_tracker
from nightherd.wiring.workspaces import open_artifacts, open_setup_cache, open_workspace_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from nightherd.engine.contexts import (
        AfterJob,
        EndExecutions,
        FleetContext,
        SignOn,
        WorkerContext,
    )
    from nightherd.engine.doctor.record import RepairContext
    from nightherd.engine.workers.lease import Beats, Lease, LeaseTerms
    from nightherd.engine.workers.rescue import RescueTerms
    from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
    from nightherd.model.agents.agent import Agent, Fleet
    from nightherd.model.checkpoints.persistence import Persistence
    from nightherd.model.ids import JobId, WorkerId
    from nightherd.model.permissions.protected import ProtectedPaths
    from nightherd.ports import Clock, HookCarrier, StateReader, StateWriter
    from nightherd.runtimes.keeper.keepers import Keepers


COMMANDS_AT_ONCE = 10
"""Commands of workflows that run at the same time, beside the fleet's own limit."""


def lease_terms(fleet: Fleet) -> LeaseTerms:
    """How the fleet's workers hold their leases."""
    from nightherd.engine.workers.lease import LeaseTerms

    return LeaseTerms(
        length_s=fleet.lease.total_seconds(), heartbeat_s=fleet.heartbeat.total_seconds()
    )


@asynccontextmanager
async def open_worker(
    state_dir: Path, fleet: Fleet, environ: Mapping[str, str], started_at: datetime | None = None
) -> AsyncIterator[WorkerContext]:
    """Open everything that running jobs needs, on `state_dir`; close it when the context ends.

    The worker is on record while the context lasts, and the mirror follows it.
    """
    from anyio.to_thread import run_sync

    from nightherd.engine.workspaces.moved import follow_move
    from nightherd.files.paths import directory_identity
    from nightherd.journal.syncing import SyncThreads
    from nightherd.state.directory import init_state_directory

    _refuse_windows()
    init_state_directory(state_dir)
    async with AsyncExitStack() as opened:
        state = open_store(state_dir, system_clock(), fleet.durability)
        opened.push_async_callback(state.close)
        mirror = open_mirror(state_dir, fleet, started_at) if fleet.mirror else None
        if mirror is not None:
            mirror.start()
            opened.push_async_callback(run_sync, mirror.stop)
        keepers = _keepers(lease_terms(fleet), directory_identity(state_dir))
        sign_on = _signing_on(opened, lease_terms(fleet), state, system_clock(), keepers)
        worker, lease = await sign_on()
        reader = opened.enter_context(closing(open_reader(state_dir)))
        base = _fleet_context(state_dir, fleet, environ, state, reader)
        log = opened.enter_context(closing(open_log(state_dir, base.secrets)))
        syncs = opened.enter_context(closing(SyncThreads()))
        runtimes = Runtimes(keepers, state_dir, fleet.cancel_grace, base.environment)
        opened.push_async_callback(runtimes.close)
        context = _worker_context(state_dir, fleet, base, keepers, runtimes, worker, lease)
        await follow_move(context, context.open_workspaces)
        yield replace(
            context,
            log=log,
            sync=syncs.sync,
            sign_on=sign_on,
            declare=mirror.declare if mirror is not None else context.declare,
        )


@asynccontextmanager
async def open_fleet_context(
    state_dir: Path, fleet: Fleet | None, environ: Mapping[str, str]
) -> AsyncIterator[FleetContext]:
    """Open what recording, resuming and cancelling jobs needs, on `state_dir`: no worker, no lease, no process.

    Without a fleet nothing is made that is not there, and only what needs no agent can be done.
    """
    from anyio.to_thread import run_sync

    from nightherd.state.directory import init_state_directory

    _refuse_windows()
    if fleet is not None:
        init_state_directory(state_dir)
    async with AsyncExitStack() as opened:
        durability = "checkpoint" if fleet is None else fleet.durability
        state = open_store(state_dir, system_clock(), durability)
        opened.push_async_callback(state.close)
        if fleet is not None and fleet.mirror:
            mirror = open_mirror(state_dir, fleet)
            mirror.start()
            opened.push_async_callback(run_sync, mirror.stop)
        reader = opened.enter_context(closing(open_reader(state_dir)))
        yield _fleet_context(state_dir, fleet, environ, state, reader)


def _refuse_windows() -> None:
    if sys.platform == "win32":
        raise RefusedError("Windows is not supported; run nightherd under WSL")


def _fleet_context(
    state_dir: Path,
    fleet: Fleet | None,
    environ: Mapping[str, str],
    state: StateWriter,
    reader: StateReader,
) -> FleetContext:
    from nightherd.engine.contexts import FleetContext
    from nightherd.engine.operations.tokens import TOKEN_VARIABLE
    from nightherd.files.paths import directory_identity
    from nightherd.model.agents.agent import Fleet

    persistence = _persistence(state_dir, is_needed=fleet is not None)
    has_threads = fleet.mirror if fleet is not None else (state_dir / "threads").is_dir()
    threads = open_threads(state_dir, persistence) if has_threads and persistence else None
    known = fleet or Fleet(file="", agents={})
    environment = {**known.environment, **environ}
    secrets = known_secrets(fleet, environment, state_dir)
    return FleetContext(
        state=state,
        reader=reader,
        journals=open_journals(state_dir, known.durability),
        can_run=can_run,
        clock=system_clock(),
        random_text=random_text(),
        directory=directory_identity(state_dir) if state_dir.is_dir() else "",
        end_executions=ending_of_executions(state_dir),
        # A person's token is not for agents.
        environment={k: v for k, v in environment.items() if k != TOKEN_VARIABLE},
        secrets=secrets,
        version=__version__,
        fleet_limit=known.max_concurrent,
        budget=known.limits,
        retry=known.retry,
        prices=known.prices,
        has_price=has_price,
        agents=known.agents,
        withheld=known.withheld,
        workflows=known.workflows,
        withheld_workflows=known.withheld_workflows,
        home=posixpath.dirname(known.file),
        commands_agent=_commands_agent(known),
        artifacts=open_artifacts(state_dir, secrets.mask),
        is_same_directory=is_same_directory,
        persistence=persistence or DEFAULT_PERSISTENCE,
        open_tracker=open_tracker,
        fleet_name=fleet_name_of(known),
        threads=threads,
        transcripts=transcripts_of(state_dir, environment),
        finished=finished_journals(state_dir),
    )


def _commands_agent(fleet: Fleet) -> Agent:
    """Return the built-in agent that runs the commands of workflows."""
    from nightherd.model.workflows.command import commands_agent
    from nightherd.runtimes.command.capabilities import COMMAND

    return commands_agent(COMMAND, posixpath.dirname(fleet.file), max_concurrent=COMMANDS_AT_ONCE)


def _persistence(state_dir: Path, *, is_needed: bool) -> Persistence | None:
    try:
        return load_persistence(state_dir)
    except ConfigInvalidError:
        if is_needed:
            raise
        return None  # a job is cancelled all the same; `config check` reports what is wrong


def is_same_directory(one: str, other: str) -> bool:
    """Whether two paths name the same directory of this machine."""
    return realpath(one) == realpath(other)


def _worker_context(
    state_dir: Path,
    fleet: Fleet,
    base: FleetContext,
    keepers: Keepers,
    runtimes: Runtimes,
    worker: WorkerId,
    lease: Lease,
) -> WorkerContext:
    """Make the context of a worker that is on record."""
    from nightherd.engine.contexts import WorkerContext
    from nightherd.engine.jobs.runner import run_job

    protect = partial(_protected_paths, state_dir)
    carrier = _carrier(keepers, runtimes)
    own = {"protected": protect(fleet), "hooks": _hooks(carrier)}
    files = cache(partial(open_workspace_files, state_dir))
    shared = {field.name: getattr(base, field.name) for field in fields(base)}
    return WorkerContext(
        **{**shared, **own},
        runtimes=runtimes,
        is_loaded=runtimes.is_loaded,
        worker=worker,
        lease=lease,
        find_secrets=partial(known_secrets, state_dir=state_dir),
        protect=protect,
        run_job=run_job,
        open_workspaces=files,
        open_setup_cache=cache(lambda: open_setup_cache(state_dir, files())),
        commands=carrier,
        settings_in=_settings_in,
        outgoing_files=open_outgoing_files(state_dir),
        chat_directory=chat_directory(state_dir),
    )


def _keepers(terms: LeaseTerms, directory: str) -> Keepers:
    """Return the worker's keepers. They act shortly before the lease ends: by then nothing of it may run."""
    from nightherd.runtimes.keeper.keepers import Keepers

    return Keepers(margin_s=min(1.0, terms.length_s / 10), directory=directory)


def _signing_on(
    opened: AsyncExitStack, terms: LeaseTerms, state: StateWriter, clock: Clock, keepers: Keepers
) -> SignOn:
    """How this process becomes a worker; each one is signed off when `opened` is closed."""
    from nightherd.host.process import this_process

    process = this_process()

    async def sign_on() -> tuple[WorkerId, Lease]:
        from nightherd.engine.workers.lease import leased
        from nightherd.model.ids import generate_worker_id

        worker = generate_worker_id(random_text())
        held = leased(worker, process, terms, state, clock, on_extended=keepers.send_heartbeat)
        return worker, await opened.enter_async_context(held)

    return sign_on


def _settings_in(agent: Agent) -> Mapping[str, str]:
    """Return the fingerprints of Claude's settings files in the agent's directory."""
    from nightherd.config.checks import settings_fingerprints

    return settings_fingerprints(agent)


def _carrier(keepers: Keepers, runtimes: Runtimes) -> HookCarrier:
    from nightherd.runtimes.hook_runner import LocalHookCarrier

    return LocalHookCarrier(
        keepers=keepers, clock=system_clock(), run_inside=runtimes.run_command_inside
    )


def _hooks(carrier: HookCarrier) -> AfterJob:
    from nightherd.engine.hooks import JobHooks
    from nightherd.views.jobs.jobs import job_row

    return JobHooks(carrier=carrier, describe_job=job_row)


def _protected_paths(state_dir: Path, fleet: Fleet) -> ProtectedPaths:
    """Return what the agents of `fleet` may not change with file tools."""
    from nightherd.model.permissions.protected import protected_paths

    return protected_paths(fleet, str(state_dir.absolute()))


def rescuer(context: FleetContext, fleet: Fleet) -> Callable[[], Awaitable[object]]:
    """Rescues every job of the fleet that lost its worker, each time it is called."""
    from nightherd.engine.workers.rescue import rescue

    record, terms = (
        _record_of(context),
        rescue_terms(context.end_executions, fleet.max_restarts, fleet),
    )
    return lambda: rescue(record, terms, threads=context.threads)


def rescuer_of_job(context: FleetContext, job_id: JobId) -> Callable[[], Awaitable[object]]:
    """Rescues that job alone, for a command that knows no fleet and ends the job."""
    from nightherd.engine.workers.rescue import rescue

    record, terms = _record_of(context), rescue_terms(context.end_executions, 0)
    return lambda: rescue(record, terms, is_wanted=lambda job: job.id == job_id)


def rescue_terms(
    end_executions: EndExecutions, max_restarts: int, fleet: Fleet | None = None
) -> RescueTerms:
    """How jobs are rescued on this machine; `end_executions` ends what they left running.

    The fleet's agents say whether their jobs are resumed automatically.
    """
    from nightherd.engine.workers.rescue import RescueTerms, resumes_of
    from nightherd.host.process import boot_id

    return RescueTerms(
        boot_id=boot_id(),
        max_restarts=max_restarts,
        kill_all_marked=end_executions,
        resumes=resumes_of(fleet),
    )


def _record_of(context: Stores) -> RepairContext:
    from nightherd.engine.doctor.record import RepairContext
    from nightherd.host.process import is_alive

    return RepairContext(
        state=context.state,
        reader=context.reader,
        journals=context.journals,
        clock=context.clock,
        is_alive=is_alive,
        transcripts=context.transcripts,
        secrets=context.secrets,
    )


def make_worker_loop(
    fleet: Fleet,
    context: WorkerContext,
    reports: WorkerReports,
    *,
    leaves_when_idle: bool,
    beats: Beats | None = None,
) -> WorkerLoop:
    """A worker for `fleet`, ready to work; it looks for lost jobs three times in a lease."""
    from nightherd.engine.workers.worker import WorkerLoop

    return WorkerLoop(
        fleet,
        context,
        _record_of(context),
        rescue_terms(context.end_executions, fleet.max_restarts, fleet),
        reports,
        rescue_every_s=fleet.lease.total_seconds() / 3,
        leaves_when_idle=leaves_when_idle,
        beats=beats,
    )
