"""What every state store must do about rate limits of logins; see `state_contract` for how to run checks."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Why
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import ClaimJob, ResumeJob, SuspendExecution
from nightherd.model.jobs.job import JobStatus, SuspendReason
from nightherd.model.journal.system import Suspension
from nightherd.model.limits.login import STAGGER, LoginLimit
from nightherd.model.schedules.schedule import Slot, SlotOutcome
from nightherd.model.usage import Totals
from nightherd.testing.state_contract import OpenState, checks_in
from nightherd.testing.state_values import BEGINNING, fire, job_id, start, submit

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


LOGIN_CHECKS = checks_in(globals())
"""Every check of this module."""
