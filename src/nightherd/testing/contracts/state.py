"""What every state store must do: one check per promise, for any `StateWriter` and `StateReader`.

Run each of `CHECKS` against an empty state of your own; a check that returns has passed. Nothing here
needs pytest:

    for check in CHECKS:
        anyio.run(check, OpenState(writer=..., reader=...))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.errors import InvalidValueError
from nightherd.model.change import AdoptRows, Applied, Change, Refused, Why
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.jobs.changes import ClaimJob, RecordRuntimeSession, SuspendExecution
from nightherd.model.jobs.job import (
    ExecutionStatus,
    ExitReason,
    Job,
    JobQuery,
    JobStatus,
    SuspendReason,
)
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.system import Suspension
from nightherd.model.sessions.session import SessionMode, SessionStatus
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals, Usage
from nightherd.ports import StateReader, StateWriter
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit


class OpenState(msgspec.Struct, frozen=True, kw_only=True):
    """An empty state, opened for writing and for reading."""

    writer: StateWriter
    reader: StateReader


Check = Callable[[OpenState], Awaitable[None]]


def checks_in(names: Mapping[str, Any]) -> tuple[Check, ...]:
    """Return the checks of a module in their order; `names` are its `globals()`."""
    return tuple(check for name, check in names.items() if name.startswith("check_"))


async def check_submitted_job_reads_back_whole(state: OpenState) -> None:
    change = submit(1)
    full = replace(
        change.job,
        dedupe_key="delivery-1",
        priority=-3,
        trigger_id="issue/7",
        forked_from=job_id(90),
        resumed_from=job_id(91),
        parent_job_id=job_id(92),
        asked_about=job_id(93),
        schedule="nightly",
    )
    texts = replace(change.texts, prompt="a\x1f\u2028 b\r\n\ufeff🐄", inputs={"b": "2", "a": "ä"})

    job = await _applied(state, replace(change, job=full, texts=texts))

    assert job == replace(full, number=1, session_id=change.session.id)
    assert state.reader.find_job(full.id) == job
    assert state.reader.find_texts(full.id) == texts
    assert state.reader.find_session(change.session.id) == replace(change.session, number=1)
    assert tuple(state.reader.list_executions(full.id)) == ()


async def check_what_is_not_there_is_none(state: OpenState) -> None:
    assert state.reader.find_job(job_id(1)) is None
    assert state.reader.find_texts(job_id(1)) is None
    assert state.reader.find_session(SessionId("sess-00000001")) is None
    assert tuple(state.reader.list_executions(job_id(1))) == ()
    assert tuple(state.reader.list_jobs(JobQuery())) == ()
    assert tuple(state.reader.job_ids("job-", 5)) == ()


async def check_execution_is_recorded_from_start_to_end(state: OpenState) -> None:
    await _applied(state, submit(1))
    usage = Usage(input_tokens=10, output_tokens=4, cost_microusd=MicroUsd(1_234_567))
    totals = Totals(turns=2, messages=5, usage=usage)

    started = await _applied(state, start(1, minute=1, repo="git@example.org:herd"))
    await _applied(state, _recorded(1, "3f0c"))
    settled = await _applied(state, settle(1, minute=3, totals=totals, answer="Done."))

    (execution,) = state.reader.list_executions(job_id(1))
    assert (started.status, started.epoch) == (JobStatus.RUNNING, 1)
    assert settled == state.reader.find_job(job_id(1))
    assert settled.status is JobStatus.COMPLETED
    assert (settled.cost_microusd, settled.turns, settled.messages) == (1_234_567, 2, 5)
    assert (execution.status, execution.success) == (ExecutionStatus.FINISHED, True)
    assert (execution.repo, execution.runtime_session_id) == ("git@example.org:herd", "3f0c")
    assert execution.duration_ms == 120_000
    texts = state.reader.find_texts(job_id(1))
    assert texts is not None
    assert texts.summary == "Done."


async def check_failed_execution_says_so_in_every_row(state: OpenState) -> None:
    await _applied(state, submit(1), start(1))
    outcome = Outcome(exit_reason=ExitReason.ERROR, error="no disk", error_code="io")

    await _applied(state, settle(1, outcome=outcome))

    job = state.reader.find_job(job_id(1))
    (execution,) = state.reader.list_executions(job_id(1))
    assert job is not None
    assert (job.status, job.exit_reason) == (JobStatus.FAILED, ExitReason.ERROR)
    assert (job.error, job.error_code) == ("no disk", "io")
    assert (execution.success, execution.error) == (False, "no disk")


async def check_terminal_is_final(state: OpenState) -> None:
    await _applied(state, submit(1), start(1), settle(1))
    before = state.reader.find_job(job_id(1))

    again = await must_refuse(state, settle(1))
    restarted = await must_refuse(state, start(1))
    recorded = await must_refuse(state, _recorded(1, "late"))

    assert {again.why, restarted.why, recorded.why} == {Why.STATUS}
    assert again.job == before
    assert state.reader.find_job(job_id(1)) == before


async def check_older_epoch_is_fenced(state: OpenState) -> None:
    await _applied(state, submit(1), start(1))
    before = state.reader.find_job(job_id(1))

    settled = await must_refuse(state, replace(settle(1), epoch=0))
    recorded = await must_refuse(state, replace(_recorded(1, "zombie"), epoch=2))

    assert {settled.why, recorded.why} == {Why.FENCED}
    assert state.reader.find_job(job_id(1)) == before


async def check_job_that_does_not_exist_is_missing(state: OpenState) -> None:
    assert (await must_refuse(state, start(1))).why is Why.MISSING
    assert (await must_refuse(state, settle(1))).why is Why.MISSING


async def check_dedupe_key_takes_effect_once(state: OpenState) -> None:
    first = submit(1)
    first = replace(first, job=replace(first.job, dedupe_key="slot-1"))
    second = submit(2)
    second = replace(second, job=replace(second.job, dedupe_key="slot-1"))

    taken = await _applied(state, first)
    refused = await must_refuse(state, second)

    assert (refused.why, refused.job) == (Why.DUPLICATE, taken)
    assert state.reader.find_job(job_id(2)) is None
    assert state.reader.find_session(second.session.id) is None


async def check_taken_ids_are_refused(state: OpenState) -> None:
    await _applied(state, submit(1))
    same_job = replace(submit(2), job=submit(1).job)
    same_session = replace(submit(3), session=submit(1).session)

    assert (await must_refuse(state, same_job)).why is Why.ID_TAKEN
    assert (await must_refuse(state, same_session)).why is Why.ID_TAKEN
    assert len(state.reader.list_jobs(JobQuery())) == 1


async def check_jobs_of_one_key_share_a_session(state: OpenState) -> None:
    one, two = submit(1, mode=SessionMode.PERSISTENT), submit(2, mode=SessionMode.PERSISTENT)

    first, second = await _applied(state, one), await _applied(state, two)

    assert first.session_id == second.session_id == one.session.id
    assert state.reader.find_session(two.session.id) is None


async def check_channels_and_fresh_jobs_share_nothing(state: OpenState) -> None:
    changes = [
        submit(1, mode=SessionMode.PER_CHANNEL, channel="C1"),
        submit(2, mode=SessionMode.PER_CHANNEL, channel="C2"),
        submit(3, mode=SessionMode.FRESH_PER_JOB),
        submit(4, mode=SessionMode.FRESH_PER_JOB),
        submit(5, mode=SessionMode.PERSISTENT),
    ]

    jobs = [await _applied(state, change) for change in changes]

    sessions = {job.session_id for job in jobs}
    assert len(sessions) == 5


async def check_busy_session_lets_no_second_job_in(state: OpenState) -> None:
    persistent = SessionMode.PERSISTENT
    await _applied(state, submit(1, mode=persistent), submit(2, mode=persistent), start(1))

    refused = await must_refuse(state, start(2))
    await _applied(state, settle(1), start(2))

    job = state.reader.find_job(job_id(2))
    assert refused.why is Why.SESSION_BUSY
    assert job is not None
    assert job.session_id is not None
    session = state.reader.find_session(job.session_id)
    assert session is not None
    assert (session.status, session.job_count) == (SessionStatus.ACTIVE, 2)


async def check_session_that_does_not_fit_is_followed_by_a_new_one(state: OpenState) -> None:
    old = submit(1, mode=SessionMode.PERSISTENT)
    moved = submit(2, mode=SessionMode.PERSISTENT)
    moved = replace(moved, session=replace(moved.session, working_directory="/elsewhere"))
    later = submit(3, mode=SessionMode.PERSISTENT)
    later = replace(later, session=replace(later.session, working_directory="/elsewhere"))

    jobs = [await _applied(state, change) for change in (old, moved, later)]

    sessions = [job.session_id for job in jobs]
    assert sessions == [old.session.id, moved.session.id, moved.session.id]


async def check_numbers_have_no_gaps_and_refusals_take_none(state: OpenState) -> None:
    for number in (1, 2, 3):
        await _applied(state, submit(number))
        await must_refuse(state, submit(number))

    numbers = [job.number for job in state.reader.list_jobs(JobQuery())]
    assert numbers == [3, 2, 1]


async def check_lists_are_ordered_by_when_a_job_was_created(state: OpenState) -> None:
    for number in (1, 2, 3):
        await _applied(state, submit(number))
    first = state.reader.find_job(job_id(1))
    assert first is not None
    old = replace(
        first, id=job_id(4), session_id=None, created_at=BEGINNING - timedelta(days=1), number=0
    )
    between = replace(old, id=job_id(5), created_at=first.created_at, status=JobStatus.FAILED)
    await state.writer.apply([AdoptRows(rows=(old, between), source="elsewhere")])

    listed = _numbers(state, JobQuery(limit=10))
    by_pages: list[int] = []
    while page := _numbers(state, JobQuery(limit=2, before=by_pages[-1] if by_pages else None)):
        by_pages += page
    created = [job.created_at for job in state.reader.list_jobs(JobQuery())]
    assert (listed[-1], sorted(listed)) == (4, [1, 2, 3, 4, 5])
    assert by_pages == listed
    assert created == sorted(created, reverse=True)
    assert _numbers(state, JobQuery(status=JobStatus.PENDING, agent=first.agent)) == [3, 2, 1, 4]
    assert _numbers(state, JobQuery(status=JobStatus.PENDING, before=1)) == [4]
    assert _numbers(state, JobQuery(agent=first.agent, before=listed[-2])) == [4]


async def check_lists_page_newest_first_by_every_filter(state: OpenState) -> None:
    for number in range(1, 13):
        await _applied(state, submit(number, agent="odd" if number % 2 else "even"))
    await _applied(state, start(1), start(2), start(3))

    everything = _numbers(state, JobQuery(limit=5))
    assert everything == [12, 11, 10, 9, 8]
    assert _numbers(state, JobQuery(limit=5, before=8)) == [7, 6, 5, 4, 3]
    assert _numbers(state, JobQuery(agent="odd", limit=3)) == [11, 9, 7]
    assert _numbers(state, JobQuery(agent="odd", limit=3, before=7)) == [5, 3, 1]
    assert _numbers(state, JobQuery(status=JobStatus.RUNNING)) == [3, 2, 1]
    assert _numbers(state, JobQuery(status=JobStatus.RUNNING, agent="odd")) == [3, 1]
    assert _numbers(state, JobQuery(status=JobStatus.FAILED, agent="odd")) == []
    assert _numbers(state, JobQuery(agent="nobody")) == []


async def check_ids_are_found_by_prefix_newest_first(state: OpenState) -> None:
    for number in range(1, 6):
        await _applied(state, submit(number))
    ids = [job_id(number) for number in (5, 4, 3, 2, 1)]

    assert list(state.reader.job_ids("job-", 10)) == ids
    assert list(state.reader.job_ids("", 2)) == ids[:2]
    assert list(state.reader.job_ids(job_id(4), 10)) == [job_id(4)]
    assert list(state.reader.job_ids(job_id(4)[:-1], 10)) == ids
    assert list(state.reader.job_ids(job_id(4)[:-1] + "%", 10)) == []
    assert list(state.reader.job_ids("job-1999", 10)) == []


async def check_change_that_raises_leaves_nothing_behind(state: OpenState) -> None:
    good, bad, never = submit(1), submit(2), submit(3)
    bad = replace(bad, texts=replace(bad.texts, prompt="half a pair: \ud800"))

    try:
        await state.writer.apply([good, bad, never])
    except InvalidValueError:
        pass
    else:
        raise AssertionError("text that cannot be stored was accepted")

    assert _numbers(state, JobQuery()) == [1]
    assert state.reader.find_session(bad.session.id) is None
    assert state.reader.find_job(never.job.id) is None
    await _applied(state, submit(4))
    assert _numbers(state, JobQuery()) == [2, 1]


async def check_answers_come_in_the_order_of_changes(state: OpenState) -> None:
    answers = await state.writer.apply([submit(1), start(1), start(1), settle(1), submit(2)])

    kinds = [type(answer) for answer in answers]
    assert kinds == [Applied, Applied, Refused, Applied, Applied]
    assert tuple(await state.writer.apply([])) == ()


async def _applied(state: OpenState, *changes: Change) -> Job:
    job = (await must_apply(state, *changes)).job
    assert job is not None
    return job


def _numbers(state: OpenState, query: JobQuery) -> list[int]:
    return [job.number for job in state.reader.list_jobs(query)]


def _recorded(number: int, runtime_session_id: str) -> RecordRuntimeSession:
    return RecordRuntimeSession(
        job_id=job_id(number),
        epoch=1,
        runtime_session_id=runtime_session_id,
        at=BEGINNING + timedelta(minutes=2),
    )


NOW = BEGINNING + timedelta(minutes=1)


async def must_apply(state: OpenState, *changes: Change) -> Applied:
    """Apply the changes, which the store must accept; its answer to the last one."""
    answers = await state.writer.apply(changes)
    accepted = [answer for answer in answers if isinstance(answer, Applied)]
    assert len(accepted) == len(answers), answers
    return accepted[-1]


async def must_refuse(state: OpenState, *changes: Change) -> Refused:
    """Apply the changes, the last of which the store must refuse; its answer to that one."""
    *accepted, last = await state.writer.apply(changes)
    assert all(isinstance(answer, Applied) for answer in accepted), accepted
    assert isinstance(last, Refused), last
    return last


async def claim(
    state: OpenState, at: datetime, agents: Mapping[str, int], fleet_limit: int | None = None
) -> JobId | None:
    """Claim the next job of `agents`, each with so many at a time; None when there is none to claim."""
    worker = WorkerId("worker-00000009")
    change = ClaimJob(worker=worker, at=at, agents=agents, repos={}, fleet_limit=fleet_limit)
    (answer,) = await state.writer.apply([change])
    if isinstance(answer, Refused):
        assert answer.why is Why.NOTHING
        return None
    assert answer.job is not None
    assert answer.job.status is JobStatus.RUNNING
    return answer.job.id


def suspend(
    number: int, reason: SuspendReason = SuspendReason.LIMIT, *, until: datetime | None = None
) -> SuspendExecution:
    """The first execution of the job is suspended; without `until` it waits for a person."""
    return SuspendExecution(
        job_id=job_id(number),
        epoch=1,
        at=NOW,
        suspension=Suspension(reason=reason, message="enough", code="turns_exceeded", until=until),
        last_seq=5,
        total=Totals(),
        own=Totals(),
    )


CHECKS = checks_in(globals())
"""Every check of this module."""
