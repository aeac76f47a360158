"""What every state store must do for visits, and for what ended since one; see `state_contract` for how to run checks."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.access.visit import GRAIN, PATIENCE, MarkVisit, Visit
from nightherd.model.jobs.job import JobStatus
from nightherd.model.jobs.outcome import CANCELLED
from nightherd.model.workflows.run import RunStatus
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply
from nightherd.testing.run_values import begin, end, instant, job, job_of, start_run, workflow
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

FIRST = Visit(person="ada", began_at=BEGINNING, seen_at=BEGINNING)


async def check_visit_lasts_while_the_person_comes_back(state: OpenState) -> None:
    later = BEGINNING + PATIENCE
    await must_apply(state, MarkVisit(person="ada", at=BEGINNING))
    assert state.reader.find_visit("ada") == FIRST
    assert state.reader.find_visit("bob") is None

    await must_apply(state, MarkVisit(person="ada", at=BEGINNING + GRAIN / 2))
    assert state.reader.find_visit("ada") == FIRST
    await must_apply(state, MarkVisit(person="ada", at=later))

    assert state.reader.find_visit("ada") == replace(FIRST, seen_at=later)


async def check_next_visit_knows_when_the_one_before_ended(state: OpenState) -> None:
    last, next = BEGINNING + timedelta(minutes=20), BEGINNING + timedelta(days=1)
    for at in (BEGINNING, last, next, next + timedelta(minutes=5)):
        await must_apply(state, MarkVisit(person="ada", at=at))
    await must_apply(state, MarkVisit(person="bob", at=last))

    assert state.reader.find_visit("ada") == Visit(
        person="ada", began_at=next, seen_at=next + timedelta(minutes=5), visited_at=last
    )
    assert state.reader.find_visit("bob") == replace(
        FIRST, person="bob", began_at=last, seen_at=last
    )


async def check_jobs_that_ended_are_counted_and_listed_from_the_last_on(state: OpenState) -> None:
    for number, minute in ((1, 10), (2, 30), (3, 20), (4, 40)):
        outcome = {"outcome": CANCELLED} if number == 4 else {}
        ended = settle(number, minute=minute, **outcome)  # type: ignore[arg-type]  # one of its options
        await must_apply(state, submit(number), start(number), ended)
    await must_apply(state, submit(5), start(5))
    part = submit(6)
    part = replace(part, job=replace(part.job, parent_job_id=job_id(5)))
    await must_apply(state, part, start(6), settle(6, minute=50))
    reader, since = state.reader, BEGINNING + timedelta(minutes=20)

    done = reader.ended_jobs(JobStatus.COMPLETED, since, 10)

    assert [one.id for one in done] == [job_id(2), job_id(3)]
    assert [one.id for one in reader.ended_jobs(JobStatus.COMPLETED, since, 1)] == [job_id(2)]
    assert [one.id for one in reader.ended_jobs(JobStatus.CANCELLED, since, 5)] == [job_id(4)]
    assert reader.ended_jobs(JobStatus.FAILED, since, 5) == []
    counts = reader.count_ended_jobs(since)
    assert dict(counts) == {JobStatus.COMPLETED: 2, JobStatus.CANCELLED: 1}
    assert dict(reader.count_ended_jobs(BEGINNING + timedelta(days=1))) == {}


async def check_runs_that_ended_are_counted_and_their_phases_are_no_jobs_of_their_own(
    state: OpenState,
) -> None:
    for number, minute in ((1, 5), (2, 6)):
        await must_apply(state, start_run(number, workflow(job("dig"))))
        dig = job_of(state.reader, number, "dig")
        await must_apply(state, begin(dig), end(dig, minute))
    await must_apply(state, start_run(3, workflow(job("dig"))))
    reader = state.reader

    (run,) = reader.ended_runs(RunStatus.SUCCEEDED, instant(6), 5)

    assert (run.workflow_name, run.number) == ("graze", 2)
    assert dict(reader.count_ended_runs(BEGINNING)) == {RunStatus.SUCCEEDED: 2}
    assert dict(reader.count_ended_runs(instant(6))) == {RunStatus.SUCCEEDED: 1}
    newest = reader.ended_runs(RunStatus.SUCCEEDED, BEGINNING, 5)
    assert [one.number for one in newest] == [2, 1]
    assert reader.ended_runs(RunStatus.FAILED, BEGINNING, 5) == []
    assert dict(reader.count_ended_jobs(BEGINNING)) == {}


VISIT_CHECKS = checks_in(globals())
"""Every check of this module."""
