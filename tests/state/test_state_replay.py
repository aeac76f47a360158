"""Whatever happened, memory and SQLite answer the same, and the ledger alone gives the database again."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.errors import NightherdError, StateFileError
from nightherd.model.change import AdoptRows, Answer, Change, ExtendLease, RegisterWorker
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import CancelJob, RecordRuntimeSession
from nightherd.model.jobs.job import ExitReason, JobQuery
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.schedules.schedule import OverrideSchedule
from nightherd.model.sessions.session import SessionMode, SessionQuery
from nightherd.ports import StateReader, StateWriter
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.replay import replay
from nightherd.testing.determinism import START
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.state_values import (
    AGENT,
    BEGINNING,
    NIGHTLY,
    checkpoint,
    fire,
    job_id,
    lose,
    settle,
    start,
    submit,
    worker,
)
from state.stores import contents, open_store, replayed

NUMBERS = st.integers(1, 6)
SUBMITS = st.builds(
    submit,
    NUMBERS,
    agent=st.sampled_from(["grazer", "drover"]),
    mode=st.sampled_from(SessionMode),
    channel=st.sampled_from([None, "C1"]),
    prompt=st.text(max_size=5),
)
STARTS = st.builds(start, NUMBERS, minute=st.integers(0, 5))
SETTLES = st.builds(
    settle,
    NUMBERS,
    epoch=st.integers(0, 2),
    minute=st.integers(5, 9),
    outcome=st.builds(Outcome, exit_reason=st.sampled_from(ExitReason)),
    answer=st.none() | st.text(max_size=700),
)
RECORDS = st.builds(
    lambda number, name: RecordRuntimeSession(
        job_id=job_id(number), epoch=1, runtime_session_id=name, at=BEGINNING
    ),
    NUMBERS,
    st.text(max_size=5),
)
WORKERS = st.sampled_from(["worker-00000001", "worker-00000002"])
FLEET: list[st.SearchStrategy[Change]] = [
    st.builds(lambda number: CancelJob(job_id=job_id(number), at=BEGINNING), NUMBERS),
    st.builds(lose, NUMBERS, epoch=st.integers(1, 2)),
    st.builds(fire, st.none() | NUMBERS, minute=st.integers(1, 3), reason=st.just("busy")),
    st.builds(checkpoint, NUMBERS, header=st.dictionaries(st.text(max_size=3), st.integers())),
    st.builds(lambda name: RegisterWorker(worker=worker(name)), WORKERS),
    st.builds(
        lambda enabled, rule, reset: OverrideSchedule(
            agent=AGENT,
            schedule="nightly",
            at=BEGINNING,
            by="someone",
            enabled=enabled,
            rule=rule,
            reset=reset,
        ),
        st.none() | st.booleans(),
        st.sampled_from([None, "5m"]),
        st.booleans(),
    ),
    st.builds(
        lambda name, deadline: ExtendLease(
            worker_id=WorkerId(name), deadline=deadline, at=BEGINNING
        ),
        WORKERS,
        st.floats(0, 1e9),
    ),
    st.builds(
        lambda change: AdoptRows(rows=(change.texts, change.job, change.session), source="x"),
        SUBMITS,
    ),
]
OPERATIONS = st.lists(st.one_of(SUBMITS, STARTS, SETTLES, RECORDS, STARTS, *FLEET), max_size=30)


async def answers(writer: StateWriter, changes: list[Change]) -> list[Answer | str]:
    """What became of each change; texts that cannot be stored are an answer of their own here."""
    found: list[Answer | str] = []
    for change in changes:
        try:
            found.extend(await writer.apply([change]))
        except NightherdError as error:
            found.append(repr(error))
    return found


def everything(reader: StateReader) -> list[list[object]]:
    """The answers to every question that lists."""
    answered: list[Sequence[object]] = [
        reader.list_jobs(JobQuery(limit=100)),
        reader.list_sessions(SessionQuery(limit=100)),
        reader.list_agents(),
        reader.list_schedules(AGENT),
        reader.list_overrides(),
        reader.list_slots(NIGHTLY, 100),
        reader.live_workers(),
        *(reader.list_executions(job_id(number)) for number in range(1, 7)),
        *(reader.list_checkpoints(job_id(number)) for number in range(1, 7)),
    ]
    return [list(answer) for answer in answered]


@settings(max_examples=25, deadline=None)
@given(changes=OPERATIONS)
def test_every_history_replays_and_every_store_agrees(changes: list[Change]) -> None:
    async def main(root: Path) -> None:
        directory = init_state_directory(root / ".nightherd")
        memory = MemoryStore()
        async with open_store(directory, outbox_limit=3) as store:
            assert await answers(store, changes) == await answers(memory, changes)
            await store.apply([submit(99)])
            await memory.apply([submit(99)])
        reader = SqliteReader(directory.root)
        assert everything(reader) == everything(memory.reader())
        reader.close()
        assert replayed(directory, root / "replayed.db") == contents(directory.database)

    with tempfile.TemporaryDirectory() as root:
        anyio.run(main, Path(root))


def test_replayed_database_goes_on_where_the_ledger_ends(directory: StateDirectory) -> None:
    async def write(number: int) -> None:
        async with open_store(directory) as store:
            await store.apply([submit(number)])

    anyio.run(write, 1)
    rebuilt = directory.root / "rebuilt.db"
    assert replay(directory.ledger, rebuilt, at=START) == 1
    for path in directory.root.glob("nightherd.db*"):
        path.unlink()
    rebuilt.rename(directory.database)
    anyio.run(write, 2)

    assert [row[0] for row in contents(directory.database)["jobs"]] == [1, 2]
    again = directory.root / "again.db"
    assert replayed(directory, again) == contents(directory.database)


def test_replay_overwrites_nothing(directory: StateDirectory, tmp_path: Path) -> None:
    (tmp_path / "precious.db").write_text("precious")

    with pytest.raises(StateFileError, match="exists already"):
        replay(directory.ledger, tmp_path / "precious.db", at=START)

    assert (tmp_path / "precious.db").read_text() == "precious"


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b'{"v":1,"change":1,"at":"x","kind":"x","rows":[{"table":"cows","row":{}}]}\n',
    ],
)
def test_replay_of_a_damaged_ledger_leaves_no_half_database(
    line: bytes, directory: StateDirectory, tmp_path: Path
) -> None:
    (directory.ledger / "2026-03.jsonl").write_bytes(line)

    with pytest.raises(StateFileError):
        replay(directory.ledger, tmp_path / "made.db", at=START)

    assert list(tmp_path.glob("made.db*")) == []
