"""State, journals, logs and the record of both, opened."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from nightherd.engine.chat.retention import ChatFiles
    from nightherd.engine.checkpoints.retention import RetentionContext
    from nightherd.engine.doctor.record import RepairContext
    from nightherd.engine.sessions.directories import SessionDirectories
    from nightherd.logs.files import LogFiles
    from nightherd.mirror.threads import ThreadStateFiles
    from nightherd.model.agents.agent import Fleet
    from nightherd.model.checkpoints.persistence import Persistence
    from nightherd.model.checkpoints.retention import RetentionRun
    from nightherd.model.ids import RandomText
    from nightherd.model.log import LogPage, LogPlace
    from nightherd.model.secrets import Secrets
    from nightherd.ports import ChangeFeed, Clock, JobList, Journals, StateReader, StateWriter
    from nightherd.state.directory import StateDirectory


def system_clock() -> Clock:
    """The machine's clock."""
    from nightherd.host.system import SystemClock

    return SystemClock()


def random_text() -> RandomText:
    """Where the letters of new ids come from."""
    from nightherd.host.system import random_text as random_text_

    return random_text_


def init_state_directory(root: Path) -> StateDirectory:
    """Make the state directory at `root` whole; `StateDirectoryCreateError` when it cannot be made."""
    from nightherd.state import directory

    return directory.init_state_directory(root)


def validate_state_directory(root: Path) -> StateDirectory:
    """Return the paths of the state directory at `root`; an error when it is not whole."""
    from nightherd.state import directory

    return directory.validate_state_directory(root)


def state_directory(root: Path) -> StateDirectory:
    """Return the paths of a state directory at `root`, there or not."""
    from nightherd.state.directory import StateDirectory

    return StateDirectory(root=root)


def made_at(root: Path) -> datetime | None:
    """Return when the state directory was made on this machine; None where there is none."""
    from nightherd.state import directory

    return directory.made_at(root)


def ensure_web_token(state_dir: Path, random_text: RandomText) -> str:
    """Return the token of the API; make it first where there is none."""
    from nightherd.state import web_token

    return web_token.ensure_web_token(state_dir, random_text)


def open_reader(state_dir: Path, *, is_examining: bool = False) -> StateReader:
    """Questions about the state in `state_dir`; a directory that is not there yet reads as empty.

    What a killed writer, a power cut or a lost WAL left undone is finished before the first answer, unless
    `is_examining`: then the rows are shown as they are.
    """
    from nightherd.state.reader import SqliteReader

    catch_up = None if is_examining else partial(_catch_up, state_dir)
    return SqliteReader(state_dir, catch_up=catch_up)


def open_job_list(state_dir: Path) -> JobList:
    """The same for what lists of jobs need, and cheaper to load."""
    from nightherd.state.job_reader import SqliteJobReader

    return SqliteJobReader(state_dir, catch_up=partial(_catch_up, state_dir))


def _catch_up(state_dir: Path, waits: bool) -> None:
    """Bring database and ledger to agree; the operator log says what was put back."""
    from nightherd.model.log import LogLevel, LogLine
    from nightherd.state.store import catch_up

    clock = system_clock()
    notices = catch_up(state_dir, clock, waits=waits)
    if not notices:
        return
    log = open_log(state_dir, known_secrets(None, {}, state_dir))
    for notice in notices:
        log.write(LogLine(at=clock.now(), level=LogLevel.WARNING, event="trouble", message=notice))
    log.close()


def open_store(state_dir: Path, clock: Clock, durability: str = "checkpoint") -> StateWriter:
    """The state in `state_dir`, to be changed. Makes nothing before the first change."""
    from nightherd.model.agents.agent import Durability
    from nightherd.ports import no_probe
    from nightherd.state.store import SqliteStore

    return SqliteStore(
        state_dir,
        clock=clock,
        probe=no_probe,
        durability=Durability(durability),
    )


def open_journals(state_dir: Path, durability: str = "checkpoint") -> Journals:
    """The journals in `state_dir`."""
    from nightherd.journal.files import JournalFiles
    from nightherd.model.agents.agent import Durability
    from nightherd.ports import no_probe

    return JournalFiles(
        state_dir / "jobs",
        state_dir / "blobs",
        clock=system_clock(),
        durability=Durability(durability),
        probe=no_probe,
    )


def open_feed(state_dir: Path) -> ChangeFeed:
    """Every committed change of the state in `state_dir`, for those who follow it."""
    from nightherd.state.outbox import LedgerFeed

    return LedgerFeed(state_dir / "ledger")


def ledger_end(state_dir: Path) -> int:
    """The number of the last change of the state in `state_dir`; 0 when there is none."""
    from nightherd.state.layout import LEDGER, last_recorded

    return last_recorded(state_dir / LEDGER)


def load_persistence(state_dir: Path) -> Persistence:
    """When checkpoints are made and how state is written, as the project says."""
    from nightherd.config.persistence import load_persistence as load_persistence_

    return load_persistence_(state_dir)


def open_threads(state_dir: Path, persistence: Persistence) -> ThreadStateFiles:
    """The files that have a job as one document each."""
    from time import sleep

    from nightherd.mirror.threads import ThreadStateFiles

    return ThreadStateFiles(state_dir, persistence, pause=sleep)


@asynccontextmanager
async def open_retention(
    state_dir: Path, fleet: Fleet | None = None
) -> AsyncIterator[RetentionContext]:
    """Everything retention needs, on `state_dir`; `fleet` says how workspaces are snapshotted."""
    from nightherd.engine.checkpoints.retention import RetentionContext
    from nightherd.mirror.threads import ThreadArchive
    from nightherd.wiring.workspaces import cleanup_context

    persistence = load_persistence(state_dir)
    async with open_repair(state_dir) as record:
        files = open_threads(state_dir, persistence)
        yield RetentionContext(
            state=record.state,
            reader=record.reader,
            journals=record.journals,
            clock=record.clock,
            persistence=persistence,
            archive=ThreadArchive(state_dir, files),
            workspaces=cleanup_context(state_dir, record, fleet),
            chat_files=open_chat_files(state_dir),
            session_directories=session_directories(state_dir),
        )


def session_directories(state_dir: Path) -> SessionDirectories:
    """What Claude wrote in containers, by session."""
    from nightherd.runtimes.container.session_files import SessionDirectoryFiles

    return SessionDirectoryFiles(state_dir)


def open_chat_files(state_dir: Path) -> ChatFiles:
    """Return the files of chat in `state_dir`, as retention sees them."""
    from nightherd.engine.chat.attachment_folders import ATTACHMENTS
    from nightherd.triggers.chat.kept_files import KeptFiles
    from nightherd.wiring.chat import DIRECTORY

    chat = state_dir / DIRECTORY
    return KeptFiles(chat, chat / ATTACHMENTS)


def last_retention(state_dir: Path) -> RetentionRun | None:
    """Return the last automatic run of retention in `state_dir`."""
    from nightherd.state.retention_record import last_run

    return last_run(state_dir)


def record_retention(state_dir: Path, run: RetentionRun) -> None:
    """Record an automatic run of retention."""
    from nightherd.state.retention_record import write_run

    write_run(state_dir, run)


def forget_retention(state_dir: Path) -> None:
    """Forget the runs of retention: the next one is announced first."""
    from nightherd.state.retention_record import forget_runs

    forget_runs(state_dir)


def known_secrets(
    fleet: Fleet | None, environment: Mapping[str, str], state_dir: Path | None
) -> Secrets:
    """Everything that must not be written, what nightherd itself made in `state_dir` included; paths that exist stay readable."""
    from os.path import exists

    from nightherd.errors import StateFileError
    from nightherd.model.secrets import knowing, secrets_of
    from nightherd.state.push_keys import read_push_keys
    from nightherd.state.web_token import read_web_token

    secrets = secrets_of(fleet, environment, exists=exists)
    if state_dir is None:
        return secrets
    made: dict[str, str] = {}
    token = read_web_token(state_dir)
    if token is not None:
        made[token] = "web-token"
    with suppress(StateFileError):
        keys = read_push_keys(state_dir)
        if keys is not None:
            made[keys.private_key] = "push-key"
    return secrets.joined(knowing(made)) if made else secrets


def open_log(state_dir: Path, secrets: Secrets) -> LogFiles:
    """The log files of `state_dir`, for operators."""
    from nightherd.logs.files import LogFiles

    return LogFiles(state_dir / "logs", secrets)


def read_log_page(
    state_dir: Path, name: str | None, before: LogPlace | None, limit: int
) -> LogPage:
    """The newest lines before a place, of one log in `state_dir` or of all."""
    from nightherd.logs.pages import read_page

    return read_page(state_dir / "logs", name, before, limit)


def log_names(state_dir: Path) -> Sequence[str]:
    """Every log in `state_dir`, by its agent's name."""
    from nightherd.logs import pages

    return pages.log_names(state_dir / "logs")


@asynccontextmanager
async def open_repair(
    state_dir: Path, *, is_examining: bool = False
) -> AsyncIterator[RepairContext]:
    """Both memories of `state_dir`, for bringing them to agree. Makes nothing before the first change.

    Who is examining reads the rows as they are (`open_reader`).
    """
    from nightherd.engine.doctor.record import RepairContext
    from nightherd.host.process import is_alive

    clock = system_clock()
    state = open_store(state_dir, clock)
    reader = open_reader(state_dir, is_examining=is_examining)
    try:
        yield RepairContext(
            state=state,
            reader=reader,
            journals=open_journals(state_dir),
            clock=clock,
            is_alive=is_alive,
        )
    finally:
        reader.close()
        await state.close()
