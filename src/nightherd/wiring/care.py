"""What examines, mends, rebuilds and takes over records."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, cast

from nightherd import __version__
from nightherd.wiring.loading import load
from nightherd.wiring.memories import (
    known_secrets,
    load_persistence,
    open_feed,
    open_journals,
    open_reader,
    open_record,
    open_store,
    open_threads,
    system_clock,
)
from nightherd.wiring.mirrors import finished_journals, open_mirror, transcripts_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from nightherd.engine.adopt import Desk, Pens
    from nightherd.engine.doctor import Check, OnStep
    from nightherd.engine.record import Record
    from nightherd.engine.retelling import Retelling
    from nightherd.mirror.threads import ThreadStateFiles
    from nightherd.model.agent import Fleet
    from nightherd.state.noted_damage import NotedDamage


@asynccontextmanager
async def open_desk(
    state_dir: Path, fleet: Fleet | None, environ: Mapping[str, str], *, is_dry: bool
) -> AsyncIterator[Desk]:
    """Everything taking over foreign records needs, on `state_dir`. In a dry run nothing is made there."""
    async with AsyncExitStack() as opened:
        pens: Pens | None = None
        if not is_dry:
            load("nightherd.state.directory:init_state_directory")(state_dir)
            state = open_store(state_dir, system_clock())
            opened.push_async_callback(state.close)
            pens = load("nightherd.engine.adopt:Pens")(
                state=state, journals=finished_journals(state_dir)
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
            secrets=known_secrets(fleet, environ, state_dir),
            version=__version__,
            pens=pens,
        )


@asynccontextmanager
async def open_retelling(
    state_dir: Path, fleet: Fleet | None, environ: Mapping[str, str]
) -> AsyncIterator[Retelling]:
    """Everything that recording what was said outside the fleet needs, on `state_dir`."""
    environment = {**fleet.environment, **environ} if fleet is not None else environ
    async with open_record(state_dir) as record:
        yield load("nightherd.engine.retelling:Retelling")(
            state=record.state,
            reader=record.reader,
            journals=record.journals,
            finished=finished_journals(state_dir),
            transcripts=transcripts_of(state_dir, environment),
            secrets=known_secrets(fleet, environ, state_dir),
            version=__version__,
        )


def doctor_checks(state_dir: Path, record: Record, on_step: OnStep) -> list[Check]:
    """Everything a doctor looks at in `state_dir`, in the order in which mending makes sense."""
    clock, now = record.clock, record.clock.now()
    quick, deep = load("nightherd.state.checks:state_checks")(state_dir, clock, now, on_step)
    kill_marked = partial(
        load("nightherd.runtimes.marked:kill_marked"),
        directory=load("nightherd.files.identity:directory_identity")(state_dir),
    )
    blobs = load("nightherd.journal.blob_check:BlobCheck")(state_dir / "blobs", record.journals)
    is_kept = load("nightherd.mirror.checkup:is_kept")

    def threads_of() -> ThreadStateFiles:
        return open_threads(state_dir, load_persistence(state_dir))

    agreeing, reading = load("nightherd.engine.checks:record_checks")(
        record,
        kill_marked,
        on_step,
        noted_damage(state_dir).read,
        blobs,
        threads=lambda: threads_of() if is_kept(state_dir) else None,
    )
    mirror_checks = load("nightherd.mirror.checkup:mirror_checks")
    recorded = load("nightherd.state.ledger_end:last_recorded")(state_dir / "ledger")
    mirror, each_file = mirror_checks(
        state_dir, now, open_mirror(state_dir), open_feed(state_dir), recorded
    )
    suspended, threads = load("nightherd.mirror.thread_checkup:thread_checks")(
        state_dir,
        threads_of,
        record.reader,
        record.journals,
        now,
    )
    return [*quick, *agreeing, mirror, suspended, *deep, *reading, each_file, threads]


def night_checks(state_dir: Path, fleet: Fleet, environ: Mapping[str, str]) -> list[Check]:
    """Whether the fleet can be run unattended on this machine."""
    environment = {**fleet.environment, **environ}
    machine = load("nightherd.engine.night_checks:Machine")(
        claude_facts=lambda runtime: load("nightherd.runtimes.claude.installation:claude_facts")(
            runtime, environment
        ),
        why_no_model=lambda agent: load("nightherd.runtimes.native.readiness:why_no_model")(
            agent, environment
        ),
        git_version=load("nightherd.host.machine:git_version"),
        is_clock_synchronised=load("nightherd.host.machine:is_clock_synchronised"),
        last_recorded=lambda: load("nightherd.state.directory:last_written")(state_dir),
    )
    checks = load("nightherd.engine.night_checks:night_checks")(
        fleet.agents.values(), machine, system_clock().now()
    )
    return cast("list[Check]", checks)


def noted_damage(state_dir: Path) -> NotedDamage:
    """What somebody has taken note of that nothing can mend."""
    return cast("NotedDamage", load("nightherd.state.noted_damage:NotedDamage")(state_dir))


def rebuild_database(
    state_dir: Path,
    on_change: Callable[[int], None],
    on_lost: Callable[[str], None] | None = None,
) -> Sequence[Path]:
    """Make the database again from the ledger; where the old one was put. Refused while a worker works.

    A damaged ledger is refused too, unless `on_lost` hears what had to be left out.
    """
    process_of = load("nightherd.ports:process_of")
    is_alive = load("nightherd.host.process:is_alive")
    return cast(
        "Sequence[Path]",
        load("nightherd.state.rebuild:rebuild_database")(
            state_dir,
            at=system_clock().now(),
            is_there=lambda worker: is_alive(process_of(worker)),
            on_change=on_change,
            on_lost=on_lost,
        ),
    )
