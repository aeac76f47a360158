"""Rebuild: the database made again from the ledger, and put in the place of the old one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

from nightherd.db.connection import Database, open_for_reading, open_for_writing
from nightherd.db.ledger import Ledger, ledger_files
from nightherd.db.ledger_check import OnLost
from nightherd.db.lock import WriteLock
from nightherd.db.schema import Queries
from nightherd.errors import RefusedError, StateError, StateFileError
from nightherd.files.permission import keep_aside
from nightherd.model.worker import Worker
from nightherd.next_step import Action, NextStep
from nightherd.ports import Probe, no_probe
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.fresh_ledger import replace_ledger
from nightherd.state.layout import DATABASE
from nightherd.state.outbox import is_sound, outbox_span, waiting_after
from nightherd.state.replay import OnChange, replay
from nightherd.state.rows import SqliteRows

REBUILT = f"{DATABASE}.rebuilt"
SIDE_FILES = ("-wal", "-shm")
LEDGER_CODES = frozenset(("LEDGER_DAMAGED", "LEDGER_GAP"))

IsThere = Callable[[Worker], bool]


def rebuild_database(
    root: Path,
    *,
    at: datetime,
    is_there: IsThere,
    probe: Probe = no_probe,
    on_change: OnChange = lambda change: None,
    on_lost: OnLost | None = None,
) -> Sequence[Path]:
    """Make the database again from the ledger, then put it in place of the old one, which is kept aside.

    `RefusedError` while a worker `is_there`, or when the old database knows changes that the ledger does
    not. When this raises, or is killed, the next one continues: the ledger has every row. The paths the old
    one has now.

    A damaged ledger is an error that says the way out. With `on_lost` it is read as far as it can be, and
    starts again from the rows there are, the old one kept aside: `RefusedError` while the database is sound,
    which has more.
    """
    directory = init_state_directory(root)
    rebuilt = directory.root / REBUILT
    with closing(WriteLock(directory.write_lock, notice=lambda text: None)) as lock, lock:
        _delete(rebuilt, ("", *SIDE_FILES))
        try:
            if on_lost is None:
                _finish_ledger(directory)
            elif _has_sound_database(directory):
                raise RefusedError("the database is sound", next_step=NextStep(Action.REPAIR_STATE))
            replay(directory.ledger, rebuilt, at=at, on_change=on_change, on_lost=on_lost)
        except StateFileError as error:
            raise _with_way_out(directory, error) from error
        probe("rebuild.replayed")
        _refuse_at_work(rebuilt, is_there)
        kept = _swap(directory, rebuilt, at, probe)
        if on_lost is not None:
            kept += _begin_ledger(directory, at)
        return kept


def _swap(directory: StateDirectory, rebuilt: Path, at: datetime, probe: Probe) -> list[Path]:
    """The side files go first: what is in them must never be taken for a part of the new database."""
    kept = []
    for suffix in (*SIDE_FILES, ""):
        path = directory.database.with_name(directory.database.name + suffix)
        if path.exists() or path.is_symlink():
            kept.append(keep_aside(path, at))
            probe(f"rebuild.kept{suffix}")
    rebuilt.rename(directory.database)
    return kept


def _begin_ledger(directory: StateDirectory, at: datetime) -> list[Path]:
    """The ledger of what was salvaged; when that is nothing, the old one is only kept aside."""
    with closing(open_for_writing(directory.database)) as database:
        if outbox_span(database)[1]:
            return replace_ledger(directory, database, at)
        return [keep_aside(path, at) for path in ledger_files(directory.ledger)]


def _has_sound_database(directory: StateDirectory) -> bool:
    try:
        database = open_for_reading(directory.database)
    except StateError:
        return False
    if database is None:
        return False
    try:
        return is_sound(database) and outbox_span(database)[1] > 0
    except StateError:
        return False
    finally:
        database.close()


def _with_way_out(directory: StateDirectory, error: StateFileError) -> StateFileError:
    """A damaged ledger, with what to do about it."""
    if error.code not in LEDGER_CODES:
        return error
    hint = "restore the file from a backup; if you cannot, rebuild without what cannot be read"
    step = NextStep(Action.SALVAGE_STATE)
    if _has_sound_database(directory):
        hint = "the database is sound: start a new ledger from it"
        step = NextStep(Action.REPAIR_STATE)
    return StateFileError(
        error.message,
        path=error.path,
        operation=error.operation,
        code=error.code,
        hint=hint,
        next_step=step,
    )


def _finish_ledger(directory: StateDirectory) -> None:
    """What was committed and not yet in the ledger gets there first, as far as the old database can be read."""
    try:
        database = open_for_reading(directory.database)
    except StateError:
        return  # that is why it is rebuilt
    if database is None:
        return
    try:
        _feed(database, Ledger(directory.ledger, no_probe))
    finally:
        database.close()


def _feed(database: Database, ledger: Ledger) -> None:
    recorded = ledger.last_change()
    try:
        _, last = outbox_span(database)
        waiting = waiting_after(database, recorded)
        for entry in waiting:
            entry.decoded()
        if not is_sound(database):
            return  # what it says it knows cannot be relied on; the file is kept
    except StateError:
        return  # too damaged to know
    if waiting and waiting[0].change == recorded + 1:
        ledger.append(waiting)
    elif last > recorded:
        raise RefusedError(
            f"the database knows changes up to {last}, the ledger only up to {recorded}:"
            " they would be lost",
            next_step=NextStep(Action.REPAIR_STATE),
        )


def _refuse_at_work(rebuilt: Path, is_there: IsThere) -> None:
    """A worker whose database is swapped under it would lose its job; one that is gone does not matter."""
    database = open_for_reading(rebuilt)
    if database is None:
        return
    try:
        workers = SqliteRows(database, Queries()).list(Worker, "live_workers", ())
    finally:
        database.close()
        _delete(rebuilt, SIDE_FILES)  # made by reading it; nothing is in them
    pids = [str(worker.pid) for worker in workers if is_there(worker)]
    if pids:
        rebuilt.unlink()
        raise RefusedError(
            f"a worker is running (pid {', '.join(pids)})", hint="let it finish, or stop it, first"
        )


def _delete(path: Path, suffixes: Sequence[str]) -> None:
    for suffix in suffixes:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
