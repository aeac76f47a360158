"""What sessions cost as they grow: forking, looking at the end, going on, and listing many of them.

A session of 10, 1,000 and 10,000 messages of a kilobyte each. A fork is made in the middle, durably, beside a
copy of the same journal, and beside a branch in the session store of openai-agents. Going on is beside a bare read of the journal, each line decoded and nothing else.
Minima over several rounds; the list is beside one of 1,000 sessions.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
import msgspec
from benchmarks.peers.asked import ask, environment
from msgspec.structs import replace

from nightherd.db.connection import open_for_writing
from nightherd.engine.operations.fork import AtMessage, find_point
from nightherd.engine.operations.sessions import fork_session
from nightherd.host.system import SystemClock, random_text
from nightherd.journal.files import JournalFiles
from nightherd.journal.finished import FinishedJournalFiles
from nightherd.model.change import AdoptRows, Row
from nightherd.model.ids import JobId, SessionId, generate_execution_id
from nightherd.model.journal.event import VERSION, AssistantEvent, Event, SystemEvent, describe
from nightherd.model.journal.recollection import rebuilt_rows, recollect
from nightherd.model.journal.system import Complete, End, ExecutionStarted, Header, SystemSubtype
from nightherd.model.sessions.context_window import contextual
from nightherd.model.sessions.session import Session, SessionMode, SessionQuery, SessionStatus
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.state.tables import table_of
from nightherd.testing.state_values import BEGINNING
from nightherd.views.sessions.conversation import events_of, history_page, segments_of
from nightherd.views.sessions.sessions import list_page

SIZES = (10, 1_000, 10_000)
TEXT = "x" * 1_000
ROUNDS = 25
LISTED = (1_000, 100_000)
FORK_BYTES = 2_048
PEER = "openai-agents==0.24.0"
SESSION = SessionId("sess-bench000")
JOB = JobId("job-2026-03-01-bench0")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A state directory with one session in it."""

    directory: StateDirectory
    journals: JournalFiles
    reader: SqliteReader
    session: Session
    messages: int


def conversation(count: int) -> Iterator[Event]:
    """A job's journal: a question and an answer in turn, so many messages."""
    header = Header(
        id=JOB, agent="bench", trigger_type="manual", created_at=BEGINNING, session_id=SESSION
    )
    yield describe(header)
    yield describe(ExecutionStarted(worker="worker-bench000"))
    for number in range(1, count + 1):
        if number % 2:
            yield SystemEvent(
                subtype=SystemSubtype.USER_INPUT, content=TEXT, message=number, end=True
            )
        else:
            yield AssistantEvent(content=TEXT, message=number, turn=number // 2, index=0, end=True)
    yield describe(Complete())
    yield describe(End(status="completed", exit_reason="success"))


def stamped(events: Iterator[Event]) -> Iterator[Event]:
    at: datetime = BEGINNING
    for seq, event in enumerate(events, 1):
        at += timedelta(milliseconds=1)
        yield msgspec.structs.replace(
            event,
            v=VERSION,
            seq=seq,
            epoch=1,
            timestamp=at,
            execution=generate_execution_id(JOB, 1),
        )


async def build(root: Path, count: int) -> World:
    """A world whose session has `count` messages."""
    directory = init_state_directory(root)
    pens = FinishedJournalFiles(root / "jobs", root / "blobs")
    events = list(stamped(conversation(count)))
    pens.write(JOB, events)
    rows = rebuilt_rows(recollect(events))
    if rows is None or rows.session is None:
        raise SystemExit("the journal has no header")
    session = replace(
        rows.session, mode=SessionMode.PERSISTENT, status=SessionStatus.PAUSED, token_estimate=1
    )
    store = SqliteStore(root, SystemClock())
    adopted: tuple[Row, ...] = (session, rows.job, rows.texts, *rows.executions)
    await store.apply([AdoptRows(rows=adopted, source="bench")])
    await store.close()
    reader = SqliteReader(root)
    found = reader.find_session(SESSION)
    if found is None:
        raise SystemExit("the session is not there")
    journals = JournalFiles(root / "jobs", root / "blobs", clock=SystemClock())
    return World(
        directory=directory, journals=journals, reader=reader, session=found, messages=count
    )


def least(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The least time it took, in seconds."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - begun)
    return best


async def fork_seconds(world: World) -> float:
    """One durable fork in the middle."""
    store = SqliteStore(world.directory.root, SystemClock())
    clock = SystemClock()
    at = AtMessage(number=world.messages // 2)
    best = float("inf")
    try:
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            point = find_point(world.reader, world.journals, world.session, at)
            await fork_session(
                world.session, point, state=store, clock=clock, random_text=random_text
            )
            best = min(best, time.perf_counter() - begun)
    finally:
        await store.close()
    return best


def peer_branch(python: Path, messages: int) -> tuple[float, int]:
    """Seconds and bytes of a branch there."""
    milliseconds, size = ask(python, "openai_branch.py", messages)
    return milliseconds / 1e3, int(size)


def ledger_bytes(world: World) -> int:
    return sum(path.stat().st_size for path in world.directory.ledger.iterdir())


def report_forks(worlds: list[World], root: Path) -> None:
    python = environment(PEER, module="agents")
    for world in worlds:
        before = ledger_bytes(world)
        ours = anyio.run(fork_seconds, world)
        each = (ledger_bytes(world) - before) // ROUNDS
        journal = world.journals.path(JOB)
        copy = least(partial(shutil.copyfile, journal, root / "copy.jsonl"))
        size = journal.stat().st_size
        print(f"{world.messages:,} messages: a fork writes {each:,} bytes, a copy {size:,}")
        if each >= FORK_BYTES:
            raise SystemExit(f"a fork writes {each} bytes, more than {FORK_BYTES}")
        print(
            f"fork at message {world.messages // 2:,} of {world.messages:,}: {ours * 1e3:.2f} ms (limit 2 ms)"
        )
        print(f"copy of a journal of {world.messages:,}: {copy * 1e3:.2f} ms")
        if python is not None:
            theirs, size = peer_branch(python, world.messages)
            print(f"a branch in openai-agents takes {theirs * 1e3:.2f} ms and {size:,} bytes")
            ratio = theirs / ours
            print(
                f"branch in openai-agents against a fork, {world.messages:,} messages: {ratio:.1f}x"
            )


def report_reading(world: World) -> None:
    def last() -> None:
        parts = segments_of(world.reader, world.journals, world.session)
        page = history_page(world.journals, parts, limit=20)
        if len(page.messages) != 20:
            raise SystemExit(f"{len(page.messages)} messages")

    def go_on() -> None:
        parts = segments_of(world.reader, world.journals, world.session)
        if len(list(contextual(events_of(world.journals, parts)))) < world.messages:
            raise SystemExit("messages are missing")

    path = world.journals.path(JOB)
    decoder = msgspec.json.Decoder(Event)

    def bare() -> None:
        with path.open("rb") as file:
            found = [decoder.decode(line) for line in file]
        if len(found) < world.messages:
            raise SystemExit("lines are missing")

    print(f"last 20 of {world.messages:,} messages: {least(last) * 1e3:.2f} ms (limit 1 ms)")
    ours = theirs = float("inf")
    for _ in range(ROUNDS):  # by turns: what else the machine does hits both
        ours, theirs = min(ours, least(go_on, 1)), min(theirs, least(bare, 1))
    print(
        f"{world.messages:,} messages for the next request in {ours * 1e3:.0f} ms, bare {theirs * 1e3:.0f} ms"
    )
    print(
        f"going on with {world.messages:,} messages against a bare read: {ours / theirs:.2f}x (limit 1.2x)"
    )


def fill(directory: StateDirectory, count: int, template: Session) -> None:
    """A store with `count` sessions, spread over agents, most completed."""
    table = table_of(Session)
    database = open_for_writing(directory.database)
    database.execute("BEGIN IMMEDIATE")
    for number in range(2, count + 2):
        paused = number % 10 == 0
        session = replace(
            template,
            id=SessionId(f"sess-{number:08x}"),
            number=number,
            agent=f"agent-{number % 10}",
            status=SessionStatus.PAUSED if paused else SessionStatus.COMPLETED,
            max_idle_s=86_400.0 * 365 * 100,
        )
        database.execute(table.upsert, tuple(table.image(session).values()))
    database.execute("COMMIT")
    database.close()


def report_lists(root: Path) -> None:
    queries = {
        "unfiltered": SessionQuery(),
        "by agent": SessionQuery(agent="agent-3"),
        "by status": SessionQuery(status=SessionStatus.COMPLETED),
    }
    times: dict[tuple[int, str], float] = {}
    stored: dict[tuple[int, str], float] = {}
    for count in LISTED:
        world = anyio.run(build, root / f"list-{count}", 10)
        fill(world.directory, count, world.session)
        reader = SqliteReader(world.directory.root)
        now = SystemClock().now()
        for name, query in queries.items():
            times[count, name] = least(
                partial(list_page, reader, world.journals, query, lambda worker: True, now),
                ROUNDS * 4,
            )
            stored[count, name] = least(partial(reader.list_sessions, query), ROUNDS * 4)
        reader.close()
        world.reader.close()
    small, large = LISTED
    for name in queries:
        print(
            f"list 20 of {large:,} sessions {name}: {times[large, name] * 1e6:.0f} us (limit 1000 us)"
        )
        print(
            f"20 of {large:,} sessions {name} in the store: {stored[large, name] * 1e6:.0f} us (limit 200 us)"
        )
        ratio = times[large, name] / times[small, name]
        print(f"list {name}, {large:,} against {small:,} sessions: {ratio:.2f}x (limit 2x)")


def main() -> None:
    """Prints every time and ratio."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        worlds = [anyio.run(build, root / str(size), size) for size in SIZES]
        report_forks(worlds, root)
        report_reading(worlds[-1])
        for world in worlds:
            world.reader.close()
        report_lists(root)


if __name__ == "__main__":
    main()
