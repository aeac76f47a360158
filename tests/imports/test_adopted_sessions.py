"""Adopted sessions: followed while they are nobody's here, and left alone once a job has gone on from them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from imports.conftest import Importer
from imports.foreign_trees import CWD, ClaudeTree, uuid
from nightherd.engine.imports.context import hashed_text
from nightherd.model.change import AdoptRows, Answer, Applied, Refused, Why
from nightherd.model.ids import SESSION_ID, JobId, SessionId, generate_session_id
from nightherd.model.jobs.job import Job, JobStatus, TriggerType
from nightherd.model.sessions.changes import AdoptTurns, RefreshAdopted
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.state.directory import init_state_directory
from nightherd.state.store import SqliteStore
from nightherd.testing.contracts.state import OpenState
from nightherd.testing.determinism import FakeClock
from state.stores import STATES, StateFactory

AT = datetime(2026, 1, 2, tzinfo=UTC)
ADOPTED = Session(
    id=SessionId("sess-adopted1"),
    agent="claude",
    mode=SessionMode.FRESH_PER_JOB,
    status=SessionStatus.PAUSED,
    runtime_type="cli",
    working_directory=CWD,
    created_at=AT,
    last_active_at=AT,
    runtime_session_id=uuid(1),
    imported_from="/elsewhere",
    number=1,
)
TOLD = Job(
    id=JobId("job-2026-01-02-told01"),
    agent="claude",
    trigger_type=TriggerType.MANUAL,
    status=JobStatus.COMPLETED,
    created_at=AT,
    started_at=AT,
    session_id=ADOPTED.id,
    epoch=1,
    messages=2,
)


def refresh(
    make: StateFactory, folder: Path, before: Session, after: Session
) -> tuple[Answer, Session]:
    """What refreshing `before` to `after` answers, and the session then."""

    async def work() -> tuple[Answer, Session]:
        async with make(folder) as state:
            await state.writer.apply([AdoptRows(rows=(before,), source="test")])
            (answer,) = await state.writer.apply([RefreshAdopted(session=after)])
            return answer, _found(state, before.id)

    return anyio.run(work)


def _found(state: OpenState, session_id: SessionId) -> Session:
    found = state.reader.find_session(session_id)
    assert found is not None
    return found


@pytest.fixture(params=sorted(STATES))
def make(request: pytest.FixtureRequest) -> StateFactory:
    """Every kind of store."""
    return STATES[request.param]


def test_grown_session_is_as_its_source_is_and_keeps_its_place(
    make: StateFactory, tmp_path: Path
) -> None:
    grown = replace(
        ADOPTED, message_count=9, last_active_at=AT + timedelta(days=1), name="Cart", number=77
    )

    answer, found = refresh(make, tmp_path, ADOPTED, grown)

    assert isinstance(answer, Applied)
    assert found == replace(grown, number=1)


@pytest.mark.parametrize(
    "before",
    [
        replace(ADOPTED, job_count=1),
        replace(ADOPTED, status=SessionStatus.ACTIVE),
        replace(ADOPTED, status=SessionStatus.COMPLETED),
        replace(ADOPTED, imported_from=None),
    ],
)
def test_session_with_a_life_of_its_own_is_left_alone(
    before: Session, make: StateFactory, tmp_path: Path
) -> None:
    answer, found = refresh(make, tmp_path, before, replace(ADOPTED, message_count=9))

    assert isinstance(answer, Refused)
    assert answer.why is Why.STATUS
    assert found == before


def test_session_that_is_not_there_cannot_be_refreshed(make: StateFactory, tmp_path: Path) -> None:
    answer, _ = refresh(make, tmp_path, ADOPTED, replace(ADOPTED, id=SessionId("sess-nowhere0")))

    assert isinstance(answer, Refused)
    assert answer.why is Why.MISSING


def adopt_turns(make: StateFactory, folder: Path, here: Session, change: AdoptTurns) -> Answer:
    """What adopting turns answers where session `here` is; all of it is there then, or nothing."""

    async def work() -> Answer:
        async with make(folder) as state:
            await state.writer.apply([AdoptRows(rows=(here,), source="test")])
            (answer,) = await state.writer.apply([change])
            found = state.reader.find_session(change.session.id)
            jobs = state.reader.jobs_of_session(change.session.id)
            is_told = isinstance(answer, Applied)
            assert [job.id for job in jobs] == ([TOLD.id] if is_told else [])
            assert is_told == (found is not None and found.message_count == 2)
            return answer

    return anyio.run(work)


def test_turns_that_are_adopted_come_with_their_session_in_one_change(
    make: StateFactory, tmp_path: Path
) -> None:
    after = replace(ADOPTED, job_count=1, message_count=2)

    answer = adopt_turns(
        make, tmp_path, ADOPTED, AdoptTurns(expected=ADOPTED, session=after, rows=(TOLD,))
    )

    assert isinstance(answer, Applied)
    assert answer.job is not None
    assert answer.job.number == 1


def test_turns_of_a_session_that_is_over_are_adopted_in_a_branch(
    make: StateFactory, tmp_path: Path
) -> None:
    over = replace(ADOPTED, status=SessionStatus.COMPLETED)
    branch = replace(
        over, id=SessionId("sess-branch01"), parent_session_id=over.id, message_count=2
    )
    told = replace(TOLD, session_id=branch.id)

    answer = adopt_turns(
        make, tmp_path, over, AdoptTurns(expected=None, session=branch, rows=(told,))
    )

    assert isinstance(answer, Applied)


@pytest.mark.parametrize(
    ("here", "why"),
    [
        (replace(ADOPTED, status=SessionStatus.ACTIVE), Why.SESSION_BUSY),
        (replace(ADOPTED, name="moved on"), Why.STALE),
        (replace(ADOPTED, id=SessionId("sess-another1")), Why.MISSING),
    ],
)
def test_turns_of_a_session_that_has_moved_on_are_not_adopted(
    here: Session, why: Why, make: StateFactory, tmp_path: Path
) -> None:
    after = replace(ADOPTED, job_count=1, message_count=2)
    change = AdoptTurns(expected=ADOPTED, session=after, rows=(TOLD,))

    answer = adopt_turns(make, tmp_path, here, change)

    assert isinstance(answer, Refused)
    assert answer.why is why


def put(state: Path, session: Session) -> None:
    """A session that was here before the import."""

    async def work() -> None:
        store = SqliteStore(init_state_directory(state).root, FakeClock())
        await store.apply([AdoptRows(rows=(session,), source="test")])
        await store.close()

    anyio.run(work)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"job_count": 1}, "session sess-adopted1 has jobs of its own by now"),
        ({"imported_from": None}, "it is session sess-adopted1 of a job that was run here"),
    ],
)
def test_import_leaves_a_session_with_jobs_to_them(
    change: dict[str, int | None], reason: str, importer: Importer, claude: ClaudeTree
) -> None:
    before = replace(ADOPTED, **change)
    put(importer.state, before)
    claude.talk()

    data = importer.data("claude", str(claude.root))

    assert [one["reason"].startswith(reason) for one in data["skipped"]] == [True]
    assert importer.sessions() == [before]
    assert not importer.copy(f"{uuid(1)}.jsonl").exists()


def test_id_that_another_session_has_is_passed_over(importer: Importer, claude: ClaudeTree) -> None:
    taken = generate_session_id(hashed_text(f"claude\n{uuid(1)}\n0"))
    put(importer.state, replace(ADOPTED, id=taken, runtime_session_id="another"))
    claude.talk()

    importer.data("claude", str(claude.root))

    ids = {one.runtime_session_id: one.id for one in importer.sessions()}
    assert ids["another"] == taken
    assert ids[uuid(1)] != taken


def test_ids_follow_from_what_is_imported() -> None:
    make: Callable[[str], SessionId] = lambda seed: generate_session_id(hashed_text(seed))  # noqa: E731

    assert make("a") == make("a") != make("b")
    assert SESSION_ID.fullmatch(make("a"))
