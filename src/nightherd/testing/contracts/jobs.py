"""What every state store must do for jobs: their ends, jobs below others, order in time, and rate limits of logins; see `state_contract` for how to run it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from nightherd.model.change import AdoptRows, Answer, Applied, Refused, Why
from nightherd.model.checkpoints.checkpoint import RemoveCheckpoints
from nightherd.model.ids import SessionId, WorkerId
from nightherd.model.jobs.changes import CancelJob, ClaimJob, ResumeJob, SubmitJob, SuspendExecution
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason
from nightherd.model.jobs.outcome import CANCELLED, Outcome
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.login import STAGGER, LoginLimit
from nightherd.model.schedules.schedule import Slot, SlotOutcome
from nightherd.model.sessions.session import SessionQuery, SessionStatus
from nightherd.model.usage import Totals
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.state_values import (
    BEGINNING,
    checkpoint,
    fire,
    job_id,
    lose,
    settle,
    start,
    submit,
)

LATER = BEGINNING + timedelta(hours=1)


async def check_job_that_is_given_up_has_a_last_checkpoint_once(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), checkpoint(1, header={"limits": {"turns": 9}}))

    await must_apply(state, lose(1, epoch=1), start(1), lose(1, epoch=2))
    await must_refuse(state, lose(1, epoch=2))

    first, last = state.reader.list_checkpoints(job_id(1))
    assert (first.trigger, first.epoch) == ("post_llm", 1)
    assert (last.trigger, last.status, last.epoch, last.seq) == ("on_error", "failed", 2, 3)
    assert (last.turn, last.header) == (2, {"limits": {"turns": 9}})
    assert last.number > first.number


async def check_job_that_waits_is_cancelled_with_its_last_checkpoint(state: OpenState) -> None:
    await must_apply(state, submit(1), submit(2), start(2), lose(2, epoch=1))

    await must_apply(state, CancelJob(job_id=job_id(1), at=LATER))
    await must_apply(state, CancelJob(job_id=job_id(2), at=LATER))

    assert list(state.reader.list_checkpoints(job_id(1))) == [], "it never began"
    (last,) = state.reader.list_checkpoints(job_id(2))
    assert (last.trigger, last.status, last.created_at) == ("on_cancel", "cancelled", LATER)


async def check_cancelled_job_settles_only_as_cancelled(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), CancelJob(job_id=job_id(1), at=BEGINNING))

    refused = await must_refuse(state, settle(1))
    running = state.reader.find_job(job_id(1))
    await must_apply(state, settle(1, outcome=CANCELLED))

    assert refused.why is Why.CANCELLED
    assert running is not None
    assert running.status is JobStatus.RUNNING
    ended = state.reader.find_job(job_id(1))
    assert ended is not None
    assert ended.status is JobStatus.CANCELLED


FAILED = Outcome(exit_reason=ExitReason.ERROR, error="no grass")


async def check_job_that_fails_ends_what_waits_below_it_and_tells_what_runs(
    state: OpenState,
) -> None:
    await must_apply(state, submit(1), start(1), _below(2, 1), start(2), _below(3, 1))
    await must_apply(state, _below(4, 3, agent="drover"), _below(5, 2), submit(6))

    await must_apply(state, settle(1, outcome=FAILED))

    jobs = _jobs(state, 6)
    assert [jobs[number].status for number in (3, 4)] == [JobStatus.CANCELLED] * 2
    assert [jobs[number].exit_reason for number in (3, 4)] == [ExitReason.CANCELLED] * 2
    assert jobs[2].status is JobStatus.RUNNING
    assert jobs[2].cancel_requested_at == jobs[1].finished_at, "its worker ends it"
    assert jobs[5].status is JobStatus.PENDING, "it ends with the one above it"
    assert jobs[6].status is JobStatus.PENDING
    session = state.reader.find_session(_below(3, 1).session.id)
    assert session is not None
    assert session.status is SessionStatus.COMPLETED
    agent = next(one for one in state.reader.list_agents() if one.name == "grazer")
    assert (agent.current_job, agent.last_job) == (job_id(2), job_id(1))


async def check_waiting_job_is_cancelled_with_everything_below_it(state: OpenState) -> None:
    await must_apply(state, submit(1), _below(2, 1), _below(3, 2))

    await must_apply(state, CancelJob(job_id=job_id(1), at=BEGINNING))

    assert {job.status for job in _jobs(state, 3).values()} == {JobStatus.CANCELLED}


async def check_job_that_succeeds_leaves_what_is_below_it_alone(state: OpenState) -> None:
    await must_apply(state, submit(1), start(1), _below(2, 1), start(2), _below(3, 1))

    await must_apply(state, settle(1))

    jobs = _jobs(state, 3)
    assert (jobs[2].status, jobs[2].cancel_requested_at) == (JobStatus.RUNNING, None)
    assert jobs[3].status is JobStatus.PENDING


def _below(number: int, above: int, *, agent: str = "grazer") -> SubmitJob:
    asked = submit(number, agent=agent)
    return replace(asked, job=replace(asked.job, parent_job_id=job_id(above)))


def _jobs(state: OpenState, last: int) -> Mapping[int, Job]:
    found = {number: state.reader.find_job(job_id(number)) for number in range(1, last + 1)}
    return {number: job for number, job in found.items() if job is not None}


LONG_AGO = BEGINNING - timedelta(days=1)


async def check_sessions_are_listed_by_when_they_were_created(state: OpenState) -> None:
    for number in (1, 2, 3):
        await must_apply(state, submit(number), start(number))
    (newest, *_) = state.reader.list_sessions(SessionQuery())
    old = replace(newest, id=SessionId("sess-00000old"), created_at=LONG_AGO, number=0)
    await must_apply(state, AdoptRows(rows=(old,), source="elsewhere"))

    def listed(**query: object) -> list[int]:
        return [session.number for session in state.reader.list_sessions(SessionQuery(**query))]  # type: ignore[arg-type]

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
        await must_apply(state, submit(number))
    first = state.reader.find_job(job_id(1))
    assert first is not None
    old = replace(first, id=job_id(3), session_id=None, created_at=LONG_AGO, number=0)
    await must_apply(state, AdoptRows(rows=(old,), source="elsewhere"))

    for prefix in ("job-", job_id(1)[:-1]):
        assert list(state.reader.job_ids(prefix, 10)) == [job_id(2), job_id(1), job_id(3)]


async def check_jobs_without_checkpoints_left_are_not_looked_at(state: OpenState) -> None:
    await must_apply(state, submit(1), submit(2), start(1), start(2), checkpoint(1), checkpoint(2))
    gone = RemoveCheckpoints(job_id=job_id(1), numbers=(1,), at=BEGINNING, kept=())

    await must_apply(state, settle(1), gone)

    assert list(state.reader.jobs_with_checkpoints()) == [job_id(2)]


LOGIN = "claude-login:abc"
OPUS = f"{LOGIN}/opus"
RESET = BEGINNING + timedelta(hours=5)


def _limit(until: datetime = RESET, id: str = LOGIN) -> LoginLimit:
    return LoginLimit(
        id=id,
        until=until,
        next_start_at=until,
        recorded_at=BEGINNING,
        job_id=job_id(1),
        name="five_hour",
    )


def _suspend(number: int, limit: LoginLimit, *, minute: int = 2) -> SuspendExecution:
    return SuspendExecution(
        job_id=job_id(number),
        epoch=1,
        at=BEGINNING + timedelta(minutes=minute),
        suspension=Suspension(
            reason=SuspendReason.RATE_LIMIT,
            message="You've hit your limit",
            code="rate_limited",
            until=limit.until,
        ),
        last_seq=3,
        total=Totals(),
        own=Totals(),
        login_limit=limit,
    )


def _claim(at: datetime, *, stopped_by: tuple[str, ...] = (LOGIN,)) -> ClaimJob:
    return ClaimJob(
        worker=WorkerId("worker-00000001"),
        at=at,
        agents={"grazer": 9, "other": 9},
        repos={},
        stopped_by={"grazer": stopped_by},
    )


async def _hit(state: OpenState, limit: LoginLimit | None = None) -> None:
    """Job 1 hits the limit."""
    answers = await state.writer.apply([submit(1), start(1), _suspend(1, limit or _limit())])
    assert all(isinstance(one, Applied) for one in answers), answers


async def _ask(state: OpenState, change: ClaimJob) -> Answer:
    (answer,) = await state.writer.apply([change])
    return answer


async def check_no_job_of_a_limited_login_starts_before_the_reset(state: OpenState) -> None:
    await _hit(state)
    await state.writer.apply([submit(2), submit(3, agent="other")])

    other = await _ask(state, _claim(BEGINNING + timedelta(hours=1)))
    none = await _ask(state, _claim(BEGINNING + timedelta(hours=1)))
    by_name = replace(start(2, minute=90), stopped_by=(LOGIN,))
    (refused,) = await state.writer.apply([by_name])
    at_reset = await _ask(state, _claim(RESET))

    assert isinstance(other, Applied)
    assert other.job is not None
    assert other.job.agent == "other", "another login is not limited"
    assert isinstance(none, Refused)
    assert none.why is Why.NOTHING
    assert isinstance(refused, Refused)
    assert (refused.why, refused.message) == (
        Why.RATE_LIMITED,
        "rate limited until 2026-03-01T17:00:00Z (five_hour)",
    )
    assert isinstance(at_reset, Applied)
    assert at_reset.job is not None
    assert at_reset.job.id == job_id(2)
    assert next(one.login for one in state.reader.list_agents() if one.name == "grazer") == LOGIN


async def check_jobs_of_a_login_start_one_after_the_other_once_it_is_free(
    state: OpenState,
) -> None:
    await _hit(state)
    await state.writer.apply([submit(2), submit(3)])

    first = await _ask(state, _claim(RESET))
    at_once = await _ask(state, _claim(RESET + STAGGER / 2))
    (limit,) = state.reader.list_login_limits(RESET + STAGGER / 2)
    later = await _ask(state, _claim(RESET + STAGGER))

    assert isinstance(first, Applied)
    assert isinstance(at_once, Refused)
    assert (limit.until, limit.next_start_at) == (RESET, RESET + STAGGER)
    assert isinstance(later, Applied)


async def check_limit_of_a_family_of_models_stops_only_that_family(state: OpenState) -> None:
    await _hit(state, _limit(id=OPUS))
    await state.writer.apply([submit(2)])
    at = BEGINNING + timedelta(hours=1)

    opus = await _ask(state, _claim(at, stopped_by=(LOGIN, OPUS)))
    sonnet = await _ask(state, _claim(at, stopped_by=(LOGIN, f"{LOGIN}/sonnet")))

    assert isinstance(opus, Refused)
    assert isinstance(sonnet, Applied)


async def check_the_later_of_two_resets_counts(state: OpenState) -> None:
    week, hours = RESET + timedelta(days=6), RESET
    await state.writer.apply([submit(1), start(1), submit(2), start(2)])
    await state.writer.apply([_suspend(1, _limit(week)), _suspend(2, _limit(hours))])

    (limit,) = state.reader.list_login_limits(BEGINNING)

    assert limit.until == week


async def check_person_who_resumes_a_job_lifts_the_limit(state: OpenState) -> None:
    await _hit(state)
    await state.writer.apply([submit(2)])
    at = BEGINNING + timedelta(hours=1)

    resume = ResumeJob(job_id=job_id(1), at=at, lifts=(LOGIN,))
    (resumed,) = await state.writer.apply([resume])
    claimed = await _ask(state, _claim(at))

    assert isinstance(resumed, Applied)
    assert resumed.job is not None
    assert resumed.job.status is JobStatus.PENDING
    assert isinstance(claimed, Applied)


async def check_slot_of_a_limited_login_is_skipped_until_the_reset(state: OpenState) -> None:
    await _hit(state)

    early = replace(fire(7, minute=60), stopped_by=(LOGIN,))
    waiting = replace(fire(7, minute=61), stopped_by=(LOGIN,), waits=True)
    late = replace(fire(8, minute=301), stopped_by=(LOGIN,))
    skipped, refused, fired = await state.writer.apply([early, waiting, late])

    assert isinstance(skipped, Applied)
    (slot,) = (row for row in skipped.rows if isinstance(row, Slot))
    assert (slot.outcome, slot.reason) == (
        SlotOutcome.SKIPPED,
        "rate limited until 2026-03-01T17:00:00Z (five_hour)",
    )
    assert isinstance(refused, Refused)
    assert refused.why is Why.FULL
    assert isinstance(fired, Applied)
    assert fired.job is not None


JOBS_CHECKS = checks_in(globals())
"""Every check of this module."""
