"""What every state store must do for jobs below others; see `state_contract` for how to run checks."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from nightherd.model.jobs.changes import CancelJob, SubmitJob
from nightherd.model.jobs.job import ExitReason, Job, JobStatus
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.sessions.session import SessionStatus
from nightherd.testing.contract_steps import must_apply
from nightherd.testing.state_contract import Check, OpenState
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

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


FAMILY_CHECKS: tuple[Check, ...] = (
    check_job_that_fails_ends_what_waits_below_it_and_tells_what_runs,
    check_waiting_job_is_cancelled_with_everything_below_it,
    check_job_that_succeeds_leaves_what_is_below_it_alone,
)
"""Every check of this part."""
