"""Everything running jobs needs, and those who run and rescue them."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from nightherd import __version__
from nightherd.errors import RefusedError
from nightherd.wiring.loading import load
from nightherd.wiring.memories import (
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
from nightherd.wiring.mirrors import finished_journals, open_mirror, transcripts_of
from nightherd.wiring.runtimes import Runtimes, can_run, has_price

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from nightherd.engine.beats import Beats
    from nightherd.engine.lease import Lease, LeaseTerms
    from nightherd.engine.record import Record
    from nightherd.engine.rescue import RescueTerms
    from nightherd.engine.worker import Shift, WorkerReports
    from nightherd.engine.workshop import AfterJob, SignOn, Workshop
    from nightherd.model.agent import Fleet
    from nightherd.model.ids import WorkerId
    from nightherd.model.persistence import Persistence
    from nightherd.model.protected import ProtectedPaths
    from nightherd.ports import Clock, StateWriter
    from nightherd.runtimes.keeper.keepers import Keepers


def lease_terms(fleet: Fleet) -> LeaseTerms:
    """How the fleet's workers hold their leases."""
    return cast(
        "LeaseTerms",
        load("nightherd.engine.lease:LeaseTerms")(
            length_s=fleet.lease.total_seconds(), heartbeat_s=fleet.heartbeat.total_seconds()
        ),
    )


@asynccontextmanager
async def open_workshop(
    state_dir: Path, fleet: Fleet, environ: Mapping[str, str], started_at: datetime | None = None
) -> AsyncIterator[Workshop]:
    """Everything running jobs needs, on `state_dir`; what it opened is closed when the context ends.

    The worker is on record while the context lasts, and the mirror follows it.
    """
    if sys.platform == "win32":
        raise RefusedError("Windows is not supported; run nightherd under WSL")
    environment = {**fleet.environment, **environ}
    persistence = load_persistence(state_dir)
    clock = system_clock()
    load("nightherd.state.directory:init_state_directory")(state_dir)
    state = open_store(state_dir, clock, fleet.durability)
    reader = open_reader(state_dir)
    mirror = open_mirror(state_dir, fleet, started_at) if fleet.mirror else None
    async with AsyncExitStack() as opened:
        opened.push_async_callback(state.close)
        opened.callback(reader.close)
        if mirror is not None:
            mirror.start()
            opened.push_async_callback(load("anyio.to_thread:run_sync"), mirror.stop)
        terms = lease_terms(fleet)
        identity = load("nightherd.files.identity:directory_identity")(state_dir)
        keepers = _keepers(terms, identity)
        sign_on = _signing_on(opened, terms, state, clock, keepers)
        worker, lease = await sign_on()
        secrets = known_secrets(fleet, environment, state_dir)
        log = open_log(state_dir, secrets)
        opened.callback(log.close)
        syncs = load("nightherd.journal.syncing:SyncThreads")()
        opened.callback(syncs.close)
        workshop: Workshop = load("nightherd.engine.workshop:Workshop")(
            log=log,
            state=state,
            reader=reader,
            journals=open_journals(state_dir, fleet.durability),
            sync=syncs.sync,
            **_run_by(keepers, state_dir, fleet),
            clock=clock,
            random_text=random_text(),
            worker=worker,
            directory=identity,
            lease=lease,
            sign_on=sign_on,
            environment=environment,
            secrets=secrets,
            find_secrets=partial(known_secrets, state_dir=state_dir),
            version=__version__,
            **_watched_by(fleet, persistence, state_dir),
            **_told_by(state_dir, environment),
            hooks=_hooks(fleet, keepers, clock),
            **({} if mirror is None else {"declare": mirror.declare}),
        )
        yield workshop


def _keepers(terms: LeaseTerms, directory: str) -> Keepers:
    """Return the worker's keepers. They act shortly before the lease ends: by then nothing of it may run."""
    return cast(
        "Keepers",
        load("nightherd.runtimes.keeper.keepers:Keepers")(
            margin_s=min(1.0, terms.length_s / 10), directory=directory
        ),
    )


def _signing_on(
    opened: AsyncExitStack, terms: LeaseTerms, state: StateWriter, clock: Clock, keepers: Keepers
) -> SignOn:
    """How this process becomes a worker; each one is signed off when `opened` is closed."""
    process = load("nightherd.host.process:this_process")()

    async def sign_on() -> tuple[WorkerId, Lease]:
        worker = load("nightherd.model.ids:generate_worker_id")(random_text())
        held = load("nightherd.engine.lease:leased")(
            worker, process, terms, state, clock, on_extended=keepers.send_heartbeat
        )
        return worker, await opened.enter_async_context(held)

    return sign_on


def _run_by(keepers: Keepers, state_dir: Path, fleet: Fleet) -> dict[str, Any]:
    """What runs agents here."""
    runtimes = Runtimes(keepers, state_dir, fleet.cancel_grace)
    return {"runtimes": runtimes, "is_loaded": runtimes.is_loaded, "can_run": can_run}


def _hooks(fleet: Fleet, keepers: Keepers, clock: Clock) -> AfterJob:
    return cast(
        "AfterJob",
        load("nightherd.engine.hooks:JobHooks")(
            agents=fleet.agents,
            carrier=load("nightherd.runtimes.hooks.carrier:LocalHookCarrier")(
                keepers=keepers, clock=clock
            ),
            describe_job=load("nightherd.views.jobs:job_row"),
        ),
    )


def _watched_by(fleet: Fleet, persistence: Persistence, state_dir: Path) -> dict[str, Any]:
    """What jobs may use and change, whom they may ask, and where they are written as documents."""
    protected_paths = load("nightherd.model.protected:protected_paths")

    def protect(some: Fleet) -> ProtectedPaths:
        return cast("ProtectedPaths", protected_paths(some, str(state_dir.absolute())))

    return {
        "protect": protect,
        "protected": protect(fleet),
        "fleet_limit": fleet.max_concurrent,
        "budget": fleet.limits,
        "retry": fleet.retry,
        "prices": fleet.prices,
        "has_price": has_price,
        "agents": fleet.agents,
        "run_job": load("nightherd.engine.execution:execute"),
        "persistence": persistence,
        "threads": open_threads(state_dir, persistence) if fleet.mirror else None,
    }


def _told_by(state_dir: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Where what was said outside the fleet is read, and where it is written down."""
    return {
        "transcripts": transcripts_of(state_dir, environment),
        "finished": finished_journals(state_dir),
    }


def rescuer(workshop: Workshop, fleet: Fleet) -> Callable[[], Awaitable[object]]:
    """Rescues every job of the fleet that lost its worker, each time it is called."""
    rescue = load("nightherd.engine.rescue:rescue")
    record, terms = (
        _record_of(workshop),
        rescue_terms(workshop.directory, fleet.max_restarts, fleet),
    )
    return lambda: rescue(record, terms, threads=workshop.threads)


def rescue_terms(directory: str, max_restarts: int, fleet: Fleet | None = None) -> RescueTerms:
    """How jobs of the state directory with this identity are rescued on this machine.

    The fleet's agents say whether their jobs are resumed automatically.
    """
    rules = load("nightherd.engine.rescue:resumes_of")(fleet)
    return cast(
        "RescueTerms",
        load("nightherd.engine.rescue:RescueTerms")(
            boot_id=load("nightherd.host.process:boot_id")(),
            max_restarts=max_restarts,
            kill_all_marked=partial(
                load("nightherd.runtimes.marked:kill_all_marked"), directory=directory
            ),
            resumes=rules,
        ),
    )


def _record_of(workshop: Workshop) -> Record:
    return cast(
        "Record",
        load("nightherd.engine.record:Record")(
            state=workshop.state,
            reader=workshop.reader,
            journals=workshop.journals,
            clock=workshop.clock,
            is_alive=load("nightherd.host.process:is_alive"),
            transcripts=workshop.transcripts,
            secrets=workshop.secrets,
        ),
    )


def make_shift(
    fleet: Fleet,
    workshop: Workshop,
    reports: WorkerReports,
    *,
    leaves_when_idle: bool,
    beats: Beats | None = None,
) -> Shift:
    """A worker for `fleet`, ready to work; it looks for lost jobs three times in a lease."""
    return cast(
        "Shift",
        load("nightherd.engine.worker:Shift")(
            fleet,
            workshop,
            _record_of(workshop),
            rescue_terms(workshop.directory, fleet.max_restarts, fleet),
            reports,
            rescue_every_s=fleet.lease.total_seconds() / 3,
            leaves_when_idle=leaves_when_idle,
            beats=beats,
        ),
    )
