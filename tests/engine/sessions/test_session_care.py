"""Expiring: sessions that nobody goes on with are over in time, once, and never while they are used."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from nightherd.engine.sessions.cleanup import clean_up, expire_sessions
from nightherd.model.change import AdoptRows
from nightherd.model.ids import SessionId
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus, SessionTerms
from nightherd.ports import StateReader, no_probe
from nightherd.state.directory import init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_state import MemoryStore
from nightherd.testing.state_values import BEGINNING

HOUR = timedelta(hours=1)


def bench(**terms: timedelta) -> Bench:
    """An agent whose sessions live as long as that."""
    agent = replace(AGENT, session=SessionTerms(mode=SessionMode.PERSISTENT, **terms))  # type: ignore[arg-type] # only times are given
    return Bench(agent=agent)


def session_of(bench: Bench, session_id: SessionId | None) -> Session:
    assert session_id is not None
    found = bench.reader.find_session(session_id)
    assert found is not None
    return found


def test_session_expires_when_it_has_gone_unused_for_too_long() -> None:
    work = bench(timeout=HOUR)
    job = work.run()

    work.clock.advance(HOUR - timedelta(seconds=1))
    assert anyio.run(expire_sessions, work.context) == 0
    work.clock.advance(timedelta(seconds=1))
    assert anyio.run(expire_sessions, work.context) == 1

    assert session_of(work, job.session_id).status is SessionStatus.EXPIRED
    assert anyio.run(expire_sessions, work.context) == 0
    assert work.run().session_id != job.session_id


def test_use_keeps_a_session_alive_but_not_beyond_its_age() -> None:
    work = bench(timeout=3 * HOUR, idle_timeout=HOUR)
    first = work.run()
    for _ in range(3):
        work.clock.advance(HOUR - timedelta(minutes=1))
        assert anyio.run(expire_sessions, work.context) == 0
        assert work.run().session_id == first.session_id

    work.clock.advance(timedelta(minutes=3))

    assert anyio.run(expire_sessions, work.context) == 1
    assert work.run().session_id != first.session_id


def test_session_that_a_job_waits_for_does_not_expire() -> None:
    work = bench(timeout=HOUR)
    job = work.run()
    waiting = work.submit().job
    assert waiting.session_id == job.session_id

    work.clock.advance(2 * HOUR)

    assert anyio.run(expire_sessions, work.context) == 0
    assert session_of(work, job.session_id).status is SessionStatus.PAUSED
    assert work.execute(waiting.id).session_id == job.session_id


def test_why_a_job_did_not_go_on_in_its_session_is_on_record() -> None:
    work = bench(timeout=HOUR)
    first = work.run()
    work.clock.advance(2 * HOUR)

    second = work.run()

    texts = work.reader.find_texts(second.id)
    assert texts is not None
    assert texts.session_note == f"session {first.session_id}: it has expired"
    said = [getattr(event, "content", None) for event in work.journal(second.id)]
    assert texts.session_note in said


def test_cleanup_spares_a_session_that_a_job_waits_for() -> None:
    work = bench(timeout=HOUR)
    job = work.run()
    work.submit()
    work.clock.advance(2 * HOUR)

    async def clean() -> tuple[int, int]:
        done = await clean_up(work.context)
        return len(done.removed), len(done.kept)

    assert anyio.run(clean) == (0, 1)
    assert session_of(work, job.session_id).removed_at is None


def waiting(number: int, *, idle: float | None, age: float | None, unused_h: int) -> Session:
    """A session that waits, unused for so many hours before the beginning."""
    used = BEGINNING - timedelta(hours=unused_h)
    return Session(
        id=SessionId(f"sess-{number:08d}"),
        agent="grazer",
        mode=SessionMode.PERSISTENT,
        status=SessionStatus.PAUSED,
        runtime_type="scripted",
        working_directory="/pasture",
        created_at=used - HOUR,
        last_active_at=used,
        max_idle_s=idle,
        max_age_s=age,
    )


ROWS = (
    waiting(1, idle=None, age=None, unused_h=100),
    waiting(2, idle=7_200.0, age=None, unused_h=3),
    waiting(3, idle=7_200.0, age=None, unused_h=1),
    waiting(4, idle=7_200.0, age=3_600.0, unused_h=1),
    replace(waiting(5, idle=60.0, age=None, unused_h=9), removed_at=BEGINNING),
    replace(waiting(6, idle=60.0, age=None, unused_h=9), status=SessionStatus.ACTIVE),
    waiting(7, idle=7_200.0, age=None, unused_h=2),
)


def on_memory(directory: Path, check: Callable[[StateReader], None]) -> None:
    store = MemoryStore()
    anyio.run(store.apply, [AdoptRows(rows=ROWS, source="test")])
    check(store.reader())


def on_disk(directory: Path, check: Callable[[StateReader], None]) -> None:
    async def fill() -> None:
        init_state_directory(directory)
        store = SqliteStore(directory, FakeClock(), no_probe)
        try:
            await store.apply([AdoptRows(rows=ROWS, source="test")])
        finally:
            await store.close()

    anyio.run(fill)
    reader = SqliteReader(directory)
    try:
        check(reader)
    finally:
        reader.close()


@pytest.mark.parametrize("store", [on_memory, on_disk])
def test_only_those_whose_time_has_come_are_found_the_longest_unused_first(
    store: Callable[[Path, Callable[[StateReader], None]], None], tmp_path: Path
) -> None:
    def check(reader: StateReader) -> None:
        due = [row.id for row in reader.sessions_to_expire(BEGINNING, 10)]
        assert due == ["sess-00000002", "sess-00000007", "sess-00000004"]
        assert [row.id for row in reader.sessions_to_expire(BEGINNING, 1)] == ["sess-00000002"]

    store(tmp_path / "state", check)
