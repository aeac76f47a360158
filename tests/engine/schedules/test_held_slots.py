"""Slots of a schedule whose session is held by a job that somebody ran by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from engine.jobs.test_retries import RunsInTurn
from engine.schedules.stall import HOURLY, Stall, fleet
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.event import ErrorEvent, Event
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.views.fleet.fleet import fleet_document, show_fleet
from nightherd.views.schedules.schedules import list_views
from nightherd.views.schedules.why import why_next

HOUR = timedelta(hours=1)
NEEDS_A_PERSON = ErrorEvent(message="No credit", code="billing")
OUTAGE = ErrorEvent(message="No route", code="network", extra={"recoverable": True})


def stall_with(error: Event) -> tuple[Stall, Job]:
    """A persistent agent with an hourly schedule, and a job of hand that is suspended because of `error`."""
    declared = fleet(HOURLY, session=SessionTerms(mode=SessionMode.PERSISTENT))
    stall = Stall(declared)
    stall.bench.agent = declared.agents["coder"]
    retry = replace(stall.bench.context.retry, attempts=1, first_pause=3 * HOUR)
    stall.bench.context = replace(
        stall.bench.context, runtimes=lambda name: RunsInTurn([error]), retry=retry
    )
    stall.restart()
    stall.look()
    job = stall.bench.run()
    assert job.status is JobStatus.SUSPENDED
    return stall, job


def why(stall: Stall) -> str:
    (view,) = list_views(stall.bench.reader, stall.declared, lambda worker: True, stall.clock.now())
    return "\n".join(why_next(view, is_kept=True))


def test_slots_are_skipped_while_the_session_is_held_for_a_person() -> None:
    stall, held = stall_with(NEEDS_A_PERSON)

    stall.look(after=HOUR)
    stall.look(after=HOUR)

    reasons = [slot.reason or "" for slot in stall.slots()]
    assert len(reasons) == 2
    for reason in reasons:
        assert f"is held by {held.id}, which is suspended (error)" in reason
    assert held.id in why(stall)
    shown = show_fleet(
        stall.bench.reader, stall.declared.agents, lambda worker: True, stall.clock.now()
    )
    assert held.id in str(fleet_document(shown))
    assert stall.jobs() == [held], "no job was made"


def test_a_slot_fires_again_once_the_job_that_held_the_session_is_cancelled() -> None:
    stall, held = stall_with(NEEDS_A_PERSON)
    stall.look(after=HOUR)
    stall.apply(CancelJob(job_id=held.id, at=stall.clock.now()))

    stall.look(after=HOUR)

    assert [slot.job_id is not None for slot in stall.slots()] == [False, True]


@pytest.mark.parametrize("slots", [1, 2])
def test_a_slot_waits_behind_a_job_that_resumes_by_itself(slots: int) -> None:
    stall, held = stall_with(OUTAGE)

    for _ in range(slots):
        stall.look(after=HOUR)

    first = stall.slots()[0]
    assert first.job_id is not None
    ahead = stall.bench.reader.jobs_ahead(stall.bench.job(first.job_id), 10)
    assert [job.id for job in ahead] == [held.id]
    assert len(stall.jobs()) == 2, "one job waits; the next slot is skipped as overlapping"
