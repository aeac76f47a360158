"""Examine, repair, rebuild and import records."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import TYPE_CHECKING

from nightherd import __version__
from nightherd.errors import RefusedError, StateError
from nightherd.wiring.containers import engine_facts
from nightherd.wiring.executions import ending_of_executions
from nightherd.wiring.files import finished_journals, open_mirror, transcripts_of
from nightherd.wiring.runtimes import check_runtime, keeps_claude_transcripts
from nightherd.wiring.stores import (
    known_secrets,
    load_persistence,
    open_feed,
    open_journals,
    open_reader,
    open_repair,
    open_store,
    open_threads,
    system_clock,
)
from nightherd.wiring.workspaces import cleanup_context, open_survey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from nightherd.engine.doctor.doctor import Check, OnStep
    from nightherd.engine.doctor.record import RepairContext
    from nightherd.engine.imports.context import ImportContext, ImportWriters, Report
    from nightherd.engine.imports.session import SessionFile
    from nightherd.engine.sessions.import_turns import TurnImport
    from nightherd.imports.claude import ClaudeTranscript
    from nightherd.imports.herdctl import HerdctlFleet
    from nightherd.mirror.threads import ThreadStateFiles
    from nightherd.model.agents.agent import Agent, Fleet
    from nightherd.model.agents.runtime import RuntimeName
    from nightherd.model.ids import ExecutionId
    from nightherd.model.work.item import WorkItem
    from nightherd.model.work.source import SourceState
    from nightherd.state.repair import NotedDamage


def claude_directory(environ: Mapping[str, str]) -> Path:
    """Return where Claude Code keeps its files."""
    from nightherd.imports import claude

    return claude.default_directory(environ)


def find_transcripts(root: Path, report: Report) -> list[ClaudeTranscript]:
    """Return Claude Code's transcripts below `root`, oldest first; other files are put on `report`."""
    from nightherd.imports import claude

    return claude.find_transcripts(root, report)


def read_herdctl(path: Path, report: Report) -> HerdctlFleet:
    """Return herdctl's records below `path`; `NotFoundError` when there are none."""
    from nightherd.imports import herdctl

    return herdctl.read_fleet(path, report)


def read_session_file(path: Path) -> SessionFile:
    """Return the exported session in a file; `StateFileError` says what does not fit."""
    from nightherd.imports import session_file

    return session_file.read_session_file(path)


@asynccontextmanager
async def open_import(
    state_dir: Path, fleet: Fleet | None, environ: Mapping[str, str], *, is_dry: bool
) -> AsyncIterator[ImportContext]:
    """Everything taking over foreign records needs, on `state_dir`. In a dry run nothing is made there."""
    from anyio.to_thread import run_sync

    from nightherd.engine.imports.context import ImportContext, ImportWriters
    from nightherd.imports.shelf import TranscriptCopies
    from nightherd.state.directory import init_state_directory

    async with AsyncExitStack() as opened:
        writers: ImportWriters | None = None
        if not is_dry:
            init_state_directory(state_dir)
            state = open_store(state_dir, system_clock())
            opened.push_async_callback(state.close)
            writers = ImportWriters(state=state, journals=finished_journals(state_dir))
            if fleet is None or fleet.mirror:
                mirror = open_mirror(state_dir, fleet)
                mirror.start()
                opened.push_async_callback(run_sync, mirror.stop)
        reader = open_reader(state_dir)
        opened.callback(reader.close)
        shelf = TranscriptCopies(state_dir / "transcripts", is_read_only=is_dry)
        opened.callback(shelf.close)
        yield ImportContext(
            reader=reader,
            journals=open_journals(state_dir),
            shelf=shelf,
            secrets=known_secrets(fleet, environ, state_dir),
            version=__version__,
            has_transcripts=keeps_claude_transcripts,
            writers=writers,
        )


@asynccontextmanager
async def open_turn_import(
    state_dir: Path, fleet: Fleet | None, environ: Mapping[str, str]
) -> AsyncIterator[TurnImport]:
    """Everything that recording what was said outside the fleet needs, on `state_dir`."""
    from nightherd.engine.sessions.import_turns import TurnImport

    environment = {**fleet.environment, **environ} if fleet is not None else environ
    async with open_repair(state_dir) as record:
        yield TurnImport(
            state=record.state,
            reader=record.reader,
            journals=record.journals,
            finished=finished_journals(state_dir),
            transcripts=transcripts_of(state_dir, environment),
            secrets=known_secrets(fleet, environ, state_dir),
            version=__version__,
        )


def doctor_checks(state_dir: Path, record: RepairContext, on_step: OnStep) -> list[Check]:
    """Everything a doctor looks at in `state_dir`, in the order of repair."""
    from nightherd.engine.doctor.doctor import record_checks
    from nightherd.engine.doctor.runs import run_check
    from nightherd.engine.doctor.workspaces import workspace_check
    from nightherd.journal.bodies import BlobCheck
    from nightherd.mirror.checkup import is_kept, mirror_checks
    from nightherd.mirror.thread_checkup import thread_checks
    from nightherd.state.layout import last_recorded
    from nightherd.state.repair import state_checks
    from nightherd.state.run_projections import projection_check

    clock, now = record.clock, record.clock.now()
    quick, deep = state_checks(state_dir, clock, now, on_step)
    kill_here = _ending_one(state_dir)
    blobs = BlobCheck(state_dir / "blobs", record.journals)

    def threads_of() -> ThreadStateFiles:
        return open_threads(state_dir, load_persistence(state_dir))

    agreeing, reading = record_checks(
        record,
        kill_here,
        on_step,
        noted_damage(state_dir).read,
        blobs,
        threads=lambda: threads_of() if is_kept(state_dir) else None,
    )
    recorded = last_recorded(state_dir / "ledger")
    mirror, each_file = mirror_checks(
        state_dir, now, open_mirror(state_dir), open_feed(state_dir), record.reader, recorded
    )
    suspended, threads = thread_checks(
        state_dir,
        threads_of,
        record.reader,
        record.journals,
        now,
    )
    workspaces = workspace_check(cleanup_context(state_dir, record, None), open_survey(state_dir))
    runs, shown = run_check(record), projection_check(state_dir)
    agreed = [*quick, *agreeing, runs, workspaces, mirror, suspended, *deep]
    # What repairs rows may change what runs show.
    return [*agreed, shown, *reading, each_file, threads]


def _ending_one(state_dir: Path) -> Callable[[ExecutionId], Awaitable[None]]:
    """Return what ends one execution; `RefusedError` says what is left of it."""
    end = ending_of_executions(state_dir)

    async def end_one(execution: ExecutionId) -> None:
        for reason in (await end([execution])).values():
            raise RefusedError(reason)

    return end_one


def night_checks(state_dir: Path, fleet: Fleet, environ: Mapping[str, str]) -> list[Check]:
    """Whether the fleet can be run unattended on this machine."""
    from nightherd.engine.doctor.night_checks import Machine
    from nightherd.engine.doctor.night_checks import night_checks as night_checks_
    from nightherd.engine.doctor.undeclared import undeclared_check
    from nightherd.host.machine import git_version, is_clock_synchronised
    from nightherd.runtimes.claude.installation import claude_facts
    from nightherd.state.directory import last_written

    environment = {**fleet.environment, **environ}

    def why_no_model(agent: Agent) -> tuple[str, str | None] | None:
        # Only a fleet that has such an agent needs what it is made of.
        from nightherd.runtimes.native import provider as readiness

        return readiness.why_no_model(agent, environment)

    def why_not_installed(name: RuntimeName) -> tuple[str, str | None] | None:
        try:
            check_runtime(name)
        except RefusedError as error:
            return error.message, error.hint
        return None

    machine = Machine(
        why_not_installed=why_not_installed,
        claude_facts=lambda runtime: claude_facts(runtime, environment),
        why_no_model=why_no_model,
        engine_facts=lambda socket, images: engine_facts(socket, environment, images),
        git_version=git_version,
        is_clock_synchronised=is_clock_synchronised,
        last_recorded=lambda: last_written(state_dir),
    )
    checks = night_checks_(fleet.agents.values(), machine, system_clock().now())
    undeclared = undeclared_check(
        lambda: closing(open_reader(state_dir, is_examining=True)), fleet.agents
    )
    bots = _bot_checks(state_dir, fleet, environ)
    return [undeclared, *checks, *bots, *_work_checks(state_dir, fleet, environment)]


def _bot_checks(state_dir: Path, fleet: Fleet, environ: Mapping[str, str]) -> list[Check]:
    """Whether the fleet's bots can be started here; nothing without bots."""
    if not any(agent.bots for agent in fleet.agents.values()):
        return []
    from nightherd.engine.doctor.bots import bots_check
    from nightherd.views.chat.bots import BotView, show_bots
    from nightherd.wiring.chat import environment_of, why_not_opened

    environment = environment_of(fleet, environ)

    def look() -> list[BotView]:
        with closing(open_reader(state_dir, is_examining=True)) as reader:
            return show_bots(reader, fleet.agents, None, None, system_clock().now())

    return [bots_check(look, lambda settings: why_not_opened(settings, environment, fleet))]


def _work_checks(state_dir: Path, fleet: Fleet, environment: Mapping[str, str]) -> list[Check]:
    """Whether issues can be taken; nothing where no schedule takes any."""
    from nightherd.views.work.work import failing_sources, sources_of

    sources = sources_of(fleet.agents.values())
    if not sources and not _has_open_issues(state_dir):
        return []
    from nightherd.engine.doctor.work import work_check

    def look() -> tuple[Sequence[SourceState], Sequence[WorkItem]]:
        with closing(open_reader(state_dir, is_examining=True)) as reader:
            return failing_sources(reader), reader.open_work_items()

    return [work_check(look, sources, environment, system_clock().now())]


def _has_open_issues(state_dir: Path) -> bool:
    """Whether issues are in hand. A database that cannot be read is what other checks report."""
    try:
        with closing(open_reader(state_dir, is_examining=True)) as reader:
            return bool(reader.open_work_items())
    except StateError:
        return False


def noted_damage(state_dir: Path) -> NotedDamage:
    """Return the damage that was acknowledged."""
    from nightherd.state.repair import NotedDamage

    return NotedDamage(state_dir)


def rebuild_database(
    state_dir: Path,
    on_change: Callable[[int], None],
    on_lost: Callable[[str], None] | None = None,
) -> Sequence[Path]:
    """Make the database again from the ledger; where the old one was put. Refused while a worker works.

    A damaged ledger is refused too, unless `on_lost` hears what had to be left out.
    """
    from nightherd.host.process import is_alive
    from nightherd.ports import process_of
    from nightherd.state.rebuild import rebuild_database as rebuild_database_

    return rebuild_database_(
        state_dir,
        at=system_clock().now(),
        is_there=lambda worker: is_alive(process_of(worker)),
        on_change=on_change,
        on_lost=on_lost,
    )
