"""Contract of a store: lists of sessions, and ids by prefix, are ordered by when things were created."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.change import AdoptRows, Applied, Change
from nightherd.model.checkpoints.checkpoint import RemoveCheckpoints
from nightherd.model.ids import SessionId
from nightherd.model.sessions.session import SessionQuery, SessionStatus
from nightherd.testing.state_contract import Check, OpenState
from nightherd.testing.state_values import BEGINNING, checkpoint, job_id, settle, start, submit

LONG_AGO = BEGINNING - timedelta(days=1)


async def check_sessions_are_listed_by_when_they_were_created(state: OpenState) -> None:
    for number in (1, 2, 3):
        await _applied(state, submit(number), start(number))
    (newest, *_) = state.reader.list_sessions(SessionQuery())
    old = replace(newest, id=SessionId("sess-00000old"), created_at=LONG_AGO, number=0)
    await _applied(state, AdoptRows(rows=(old,), source="elsewhere"))

    def listed(**query: object) -> list[int]:
        return [one.number for one in state.reader.list_sessions(SessionQuery(**query))]  # type: ignore[arg-type]

    by_pages: list[int] = []
    while page := listed(limit=2, before=by_pages[-1] if by_pages else None):
        by_pages += page
    assert listed() == by_pages == [3, 2, 1, 4]
    assert listed(agent=newest.agent, status=newest.status, mode=newest.mode) == [3, 2, 1, 4]
    assert listed(status=SessionStatus.ACTIVE, before=1) == [4]
    assert listed(mode=newest.mode, before=4) == []
    assert list(state.reader.session_ids("sess-", 10))[-1] == old.id


async def check_ids_by_prefix_come_by_when_they_were_created(state: OpenState) -> None:
    for number in (1, 2):
        await _applied(state, submit(number))
    first = state.reader.find_job(job_id(1))
    assert first is not None
    old = replace(first, id=job_id(3), session_id=None, created_at=LONG_AGO, number=0)
    await _applied(state, AdoptRows(rows=(old,), source="elsewhere"))

    for prefix in ("job-", job_id(1)[:-1]):
        assert list(state.reader.job_ids(prefix, 10)) == [job_id(2), job_id(1), job_id(3)]


async def check_jobs_without_checkpoints_left_are_not_looked_at(state: OpenState) -> None:
    await _applied(state, submit(1), submit(2), start(1), start(2), checkpoint(1), checkpoint(2))
    gone = RemoveCheckpoints(job_id=job_id(1), numbers=(1,), at=BEGINNING, kept=())

    await _applied(state, settle(1), gone)

    assert list(state.reader.jobs_with_checkpoints()) == [job_id(2)]


async def _applied(state: OpenState, *changes: Change) -> None:
    answers = await state.writer.apply(changes)
    assert all(isinstance(answer, Applied) for answer in answers), answers


TIME_CHECKS: tuple[Check, ...] = (
    check_sessions_are_listed_by_when_they_were_created,
    check_ids_by_prefix_come_by_when_they_were_created,
    check_jobs_without_checkpoints_left_are_not_looked_at,
)
"""Every check of this part."""
