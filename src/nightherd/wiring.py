"""The one file that names concrete adapters.

Everything is named by dotted path and imported on first use: a command that only reads never loads what
writing, running or serving needs.
"""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from nightherd import __version__
from nightherd.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from nightherd.engine.adopt import Desk, Pens
    from nightherd.engine.doctor import Check, OnStep
    from nightherd.engine.lease import LeaseTerms
    from nightherd.engine.record import Record
    from nightherd.engine.rescue import RescueTerms
    from nightherd.engine.retention import Storeroom
    from nightherd.engine.worker import Shift, WorkerReports
    from nightherd.engine.workshop import Workshop
    from nightherd.logs.files import LogFiles
    from nightherd.mirror.threads import ThreadStateFiles
    from nightherd.model.agent import Fleet, RuntimeName
    from nightherd.model.event import Event
    from nightherd.model.ids import JobId, RandomText
    from nightherd.model.persistence import Persistence
    from nightherd.model.secret import Secrets
    from nightherd.model.session import Session
    from nightherd.ports import (
        ChangeFeed,
        Clock,
        JobList,
        Journals,
        Mirror,
        Runtime,
        StateReader,
        StateWriter,
    )
    from nightherd.runtimes.claude.transcripts.keeping import KeptTranscript
    from nightherd.runtimes.keeper.keepers import Keepers

RUNTIMES = {
    "cli": "nightherd.runtimes.claude.cli:ClaudeCliRuntime",
    "native": "nightherd.runtimes.native.runtime:NativeRuntime",
    "sdk": "nightherd.runtimes.claude.sdk:ClaudeSdkRuntime",
    "scripted": "nightherd.runtimes.scripted:ScriptedRuntime",
}
"""Which class runs which runtime; a runtime that is not here is not available yet."""
TRANSCRIBED = frozenset({"cli", "sdk"})
"""Runtimes that keep transcripts of their own, of which copies are kept in the state directory."""
EXTRAS = {"native": ("pydantic_ai", "native"), "sdk": ("claude_agent_sdk", "claude")}
"""What a runtime cannot do without, and the extra of this package that brings it."""


def load(path: str) -> Any:
    """The object at `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def system_clock() -> Clock:
    """The machine's clock."""
    return cast("Clock", load("nightherd.host.clock:SystemClock")())


def random_text() -> RandomText:
    """Where the letters of new ids come from."""
    return cast("RandomText", load("nightherd.host.randomness:random_text"))


def open_reader(state_dir: Path) -> StateReader:
    """Questions about the state in `state_dir`; a directory that is not there yet reads as empty."""
    return cast("StateReader", load("nightherd.state.reader:SqliteReader")(state_dir))


def open_job_list(state_dir: Path) -> JobList:
    """The same for what lists of jobs need, and cheaper to load."""
    return cast("JobList", load("nightherd.state.job_reader:SqliteJobReader")(state_dir))


def open_journals(state_dir: Path, durability: str = "checkpoint") -> Journals:
    """The journals in `state_dir`."""
    return cast(
        "Journals",
        load("nightherd.journal.files:JournalFiles")(
            state_dir / "jobs",
            state_dir / "blobs",
            clock=system_clock(),
            durability=load("nightherd.model.agent:Durability")(durability),
            probe=load("nightherd.ports:no_probe"),
        ),
    )


def can_run(name: RuntimeName) -> bool:
    """Whether something here runs `name`."""
    return name.value in RUNTIMES and _missing_extra(name) is None


def _missing_extra(name: RuntimeName) -> str | None:
    package, extra = EXTRAS.get(name.value, (None, None))
    if package is None or load("importlib.util:find_spec")(package) is not None:
        return None
    return extra


def check_runtime(name: RuntimeName) -> None:
    """`RefusedError` when nothing here runs `name`."""
    extra = _missing_extra(name)
    if extra is not None:
        raise RefusedError(
            f"runtime {name.value!r} is not installed",
            hint=f"pip install 'nightherd[{extra}]', or set `runtime: cli` to use your own `claude`",
        )
    if not can_run(name):
        there = " and ".join(repr(known) for known in RUNTIMES)
        raise RefusedError(
            f"runtime {name.value!r} is not available yet; {there} are",
            hint="set `runtime: cli` to use your own `claude`, or `runtime: scripted` and give a `script:`",
        )


def runtime_for(name: RuntimeName, keepers: Keepers, state_dir: Path, grace: timedelta) -> Runtime:
    """The runtime called `name`; everything it starts is under one of `keepers`."""
    check_runtime(name)
    more = {"transcripts": state_dir / "transcripts"} if name.value in TRANSCRIBED else {}
    return cast("Runtime", load(RUNTIMES[name.value])(keepers=keepers, grace=grace, **more))


def open_feed(state_dir: Path) -> ChangeFeed:
    """Every committed change of the state in `state_dir`, for those who follow it."""
    return cast("ChangeFeed", load("nightherd.state.feed:LedgerFeed")(state_dir / "ledger"))


def kept_transcript(
    state_dir: Path, session: Session, environment: Mapping[str, str]
) -> KeptTranscript:
    """The transcript that Claude has of the session, and our copy of it."""
    return cast(
        "KeptTranscript",
        load("nightherd.runtimes.claude.transcripts.keeping:KeptTranscript")(
            state_dir / "transcripts",
            session.runtime_session_id,
            environment=environment,
            directory=session.working_directory,
        ),
    )


def load_persistence(state_dir: Path) -> Persistence:
    """When checkpoints are made and how state is written, as the project says."""
    found = load("nightherd.config.persistence:load_persistence")(state_dir)
    return cast("Persistence", found)


def open_threads(state_dir: Path, persistence: Persistence) -> ThreadStateFiles:
    """The files that have a job as one document each."""
    files = load("nightherd.mirror.threads:ThreadStateFiles")
    return cast("ThreadStateFiles", files(state_dir, persistence, pause=load("time:sleep")))


@asynccontextmanager
async def open_storeroom(state_dir: Path) -> AsyncIterator[Storeroom]:
    """Everything retention needs, on `state_dir`."""
    persistence = load_persistence(state_dir)
    async with open_record(state_dir) as record:
        files = open_threads(state_dir, persistence)
        yield load("nightherd.engine.retention:Storeroom")(
            state=record.state,
            reader=record.reader,
            clock=record.clock,
            persistence=persistence,
            archive=load("nightherd.mirror.threads:ThreadArchive")(state_dir, files),
        )


def open_mirror(state_dir: Path, fleet: Fleet | None = None, at: datetime | None = None) -> Mirror:
    """The readable files of `state_dir`; a fleet's agents are in them, and `at` when it was started."""
    return cast(
        "Mirror",
        load("nightherd.mirror.follower:MirrorFollower")(
            state_dir,
            open_feed(state_dir),
            open_journals(state_dir),
            clock=system_clock(),
            agents=tuple(fleet.agents) if fleet is not None else None,
            conversation=partial(_conversation, state_dir),
            started_at=at,
        ),
    )


def _conversation(state_dir: Path, session_id: str) -> Sequence[Event]:
    """Everything said in a session; nothing when there is none by that id."""
    conversation = import_module("nightherd.views.conversation")
    journals, reader = open_journals(state_dir), open_reader(state_dir)
    try:
        session = reader.find_session(load("nightherd.model.ids:SessionId")(session_id))
        if session is None:
            return ()
        parts = conversation.segments_of(reader, journals, session)
        return list(conversation.events_of(journals, parts, load_blobs=False))
    finally:
        reader.close()


def write_output_log(state_dir: Path, job_id: JobId) -> Path:
    """Write the job's events as plain text to `jobs/<id>/output.log`; where that is."""
    write = load("nightherd.mirror.output_log:write_output_log")
    return cast("Path", write(state_dir, job_id, open_journals(state_dir)))


def lease_terms(fleet: Fleet) -> LeaseTerms:
    """How the fleet's workers hold their leases."""
    return cast(
        "LeaseTerms",
        load("nightherd.engine.lease:LeaseTerms")(
            length_s=fleet.lease.total_seconds(), heartbeat_s=fleet.heartbeat.total_seconds()
        ),
    )


def open_log(state_dir: Path, secrets: Secrets) -> LogFiles:
    """The log files of `state_dir`, for operators."""
    return cast("LogFiles", load("nightherd.logs.files:LogFiles")(state_dir / "logs", secrets))


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
    state: StateWriter = load("nightherd.state.store:SqliteStore")(
        state_dir,
        clock=clock,
        probe=load("nightherd.ports:no_probe"),
        durability=fleet.durability,
    )
    reader = open_reader(state_dir)
    mirror = open_mirror(state_dir, fleet, started_at) if fleet.mirror else None
    async with AsyncExitStack() as opened:
        opened.push_async_callback(state.close)
        opened.callback(reader.close)
        if mirror is not None:
            mirror.start()
            opened.push_async_callback(load("anyio.to_thread:run_sync"), mirror.stop)
        worker = load("nightherd.model.ids:generate_worker_id")(random_text())
        process = load("nightherd.host.process:this_process")()
        terms = lease_terms(fleet)
        # They act a little before the lease is over: by then nothing of ours may still run.
        keepers: Keepers = load("nightherd.runtimes.keeper.keepers:Keepers")(
            margin_s=min(1.0, terms.length_s / 10)
        )
        lease = await opened.enter_async_context(
            load("nightherd.engine.lease:leased")(
                worker, process, terms, state, clock, on_extended=keepers.send_heartbeat
            )
        )
        secrets = load("nightherd.model.secret:secrets_of")(fleet, environment)
        log = open_log(state_dir, secrets)
        opened.callback(log.close)
        workshop: Workshop = load("nightherd.engine.workshop:Workshop")(
            log=log,
            state=state,
            reader=reader,
            journals=open_journals(state_dir, fleet.durability),
            runtimes=partial(
                runtime_for, keepers=keepers, state_dir=state_dir, grace=fleet.cancel_grace
            ),
            can_run=can_run,
            clock=clock,
            random_text=random_text(),
            worker=worker,
            lease=lease,
            environment=environment,
            secrets=secrets,
            version=__version__,
            fleet_limit=fleet.max_concurrent,
            budget=fleet.limits,
            persistence=persistence,
            threads=open_threads(state_dir, persistence) if fleet.mirror else None,
            hooks=load("nightherd.engine.hooks:JobHooks")(
                agents=fleet.agents,
                carrier=load("nightherd.runtimes.hooks.carrier:LocalHookCarrier")(
                    keepers=keepers, clock=clock
                ),
                describe_job=load("nightherd.views.jobs:job_row"),
            ),
        )
        yield workshop


@asynccontextmanager
async def open_desk(
    state_dir: Path, fleet: Fleet | None, environ: Mapping[str, str], *, is_dry: bool
) -> AsyncIterator[Desk]:
    """Everything taking over foreign records needs, on `state_dir`. In a dry run nothing is made there."""
    environment = {**fleet.environment, **environ} if fleet is not None else environ
    async with AsyncExitStack() as opened:
        pens: Pens | None = None
        if not is_dry:
            load("nightherd.state.directory:init_state_directory")(state_dir)
            no_probe = load("nightherd.ports:no_probe")
            state: StateWriter = load("nightherd.state.store:SqliteStore")(
                state_dir, clock=system_clock(), probe=no_probe
            )
            opened.push_async_callback(state.close)
            journals = load("nightherd.journal.finished:FinishedJournalFiles")
            pens = load("nightherd.engine.adopt:Pens")(
                state=state, journals=journals(state_dir / "jobs", state_dir / "blobs")
            )
            if fleet is None or fleet.mirror:
                mirror = open_mirror(state_dir, fleet)
                mirror.start()
                opened.push_async_callback(load("anyio.to_thread:run_sync"), mirror.stop)
        reader = open_reader(state_dir)
        opened.callback(reader.close)
        shelf = load("nightherd.imports.shelf:TranscriptFiles")(
            state_dir / "transcripts", is_read_only=is_dry
        )
        opened.callback(shelf.close)
        yield load("nightherd.engine.adopt:Desk")(
            reader=reader,
            journals=open_journals(state_dir),
            shelf=shelf,
            secrets=load("nightherd.model.secret:find_secrets")(environment),
            version=__version__,
            pens=pens,
        )


@asynccontextmanager
async def open_record(state_dir: Path) -> AsyncIterator[Record]:
    """Both memories of `state_dir`, for bringing them to agree. Makes nothing before the first change."""
    clock = system_clock()
    state: StateWriter = load("nightherd.state.store:SqliteStore")(
        state_dir, clock=clock, probe=load("nightherd.ports:no_probe")
    )
    reader = open_reader(state_dir)
    try:
        yield load("nightherd.engine.record:Record")(
            state=state,
            reader=reader,
            journals=open_journals(state_dir),
            clock=clock,
            is_alive=load("nightherd.host.process:is_alive"),
        )
    finally:
        reader.close()
        await state.close()


def doctor_checks(state_dir: Path, record: Record, on_step: OnStep) -> list[Check]:
    """Everything a doctor looks at in `state_dir`, in the order in which mending makes sense."""
    clock, now = record.clock, record.clock.now()
    quick, deep = load("nightherd.state.checks:state_checks")(state_dir, clock, now, on_step)
    kill_marked = load("nightherd.runtimes.marked:kill_marked")
    agreeing, reading = load("nightherd.engine.checks:record_checks")(record, kill_marked, on_step)
    mirror = load("nightherd.mirror.checkup:mirror_check")(state_dir, now, open_mirror(state_dir))
    return [*quick, *agreeing, mirror, *deep, *reading]


def rebuild_database(state_dir: Path, on_change: Callable[[int], None]) -> Sequence[Path]:
    """Make the database again from the ledger; where the old one was put. Refused while a worker works."""
    process_of = load("nightherd.engine.record:process_of")
    is_alive = load("nightherd.host.process:is_alive")
    return cast(
        "Sequence[Path]",
        load("nightherd.state.rebuild:rebuild_database")(
            state_dir,
            at=system_clock().now(),
            is_there=lambda worker: is_alive(process_of(worker)),
            on_change=on_change,
        ),
    )


def refresh_mirror(state_dir: Path, *, is_new: bool) -> None:
    """Bring the readable files up to what is so now, from the beginning if `is_new`; where they are kept."""
    if not load("nightherd.mirror.checkup:is_kept")(state_dir):
        return
    mirror = open_mirror(state_dir)
    if is_new:
        mirror.rebuild()
    else:
        mirror.catch_up()


def rescuer(workshop: Workshop, fleet: Fleet) -> Callable[[], Awaitable[object]]:
    """Rescues every job of the fleet that lost its worker, each time it is called."""
    rescue = load("nightherd.engine.rescue:rescue")
    record, terms = _record_of(workshop), rescue_terms(fleet.max_restarts, fleet)
    return lambda: rescue(record, terms)


def rescue_terms(max_restarts: int, fleet: Fleet | None = None) -> RescueTerms:
    """How jobs are rescued on this machine; the fleet's agents say whether theirs go on by themselves."""
    rules = load("nightherd.engine.rescue:resumes_of")(fleet)
    return cast(
        "RescueTerms",
        load("nightherd.engine.rescue:RescueTerms")(
            boot_id=load("nightherd.host.process:boot_id")(),
            max_restarts=max_restarts,
            kill_all_marked=load("nightherd.runtimes.marked:kill_all_marked"),
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
        ),
    )


def make_shift(
    fleet: Fleet,
    workshop: Workshop,
    reports: WorkerReports,
    *,
    leaves_when_idle: bool,
) -> Shift:
    """A worker for `fleet`, ready to work; it looks for lost jobs three times in a lease."""
    return cast(
        "Shift",
        load("nightherd.engine.worker:Shift")(
            fleet,
            workshop,
            _record_of(workshop),
            rescue_terms(fleet.max_restarts, fleet),
            reports,
            rescue_every_s=fleet.lease.total_seconds() / 3,
            leaves_when_idle=leaves_when_idle,
        ),
    )
